// The resources of this machine that the process may use: cores, by affinity and by a container's quota, and
// memory. Knows nothing of instruction sets.
#pragma once

#include <cstddef>

namespace vitrail::cpu {

// Returns how many cores the process may count on, one at least, where so many processes share those that it
// may run on and so many, this one among them, a container's quota.
int usable_cores(int sharing_cores = 1, int sharing_quota = 1);
size_t physical_memory();  // bytes

}  // namespace vitrail::cpu
