// The CPU backend: its kernel list, fastest first, and the description of the CPU it runs on.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

const Backend& cpu_backend();

// This machine's processor with `threads` workers (0: one per core) and the best instruction set, or a lower
// one by name ("baseline", "avx2"). Error(kUsage) for a level the processor lacks.
DeviceInfo cpu_device(int threads = 0, std::string_view isa = {});
// The same for planning alone: any instruction set this build has, also one that the processor here lacks.
// memory_bytes 0: this machine's.
DeviceInfo planned_cpu_device(int threads, std::string_view isa, size_t memory_bytes = 0);

}  // namespace vitrail
