// The resources of this machine that the process may use: cores, by affinity and by a container's quota, and
// memory. Knows nothing of instruction sets.
#pragma once

#include <cstddef>

namespace vitrail::cpu {

int usable_cores();        // one at least
size_t physical_memory();  // bytes

}  // namespace vitrail::cpu
