// The resources of this machine that the process may use: cores, by affinity and by a container's quota, and
// memory. Knows nothing of instruction sets.
#pragma once

#include <cstddef>
#include <vector>

namespace vitrail::cpu {

// The cores that the process may run on, ascending; none where the system does not tell.
std::vector<int> allowed_cores();
// How many it may count on, one at least, where so many processes share those cores and so many, this one
// among them, a container's quota.
int usable_cores(int sharing_cores = 1, int sharing_quota = 1);
size_t physical_memory();  // bytes

}  // namespace vitrail::cpu
