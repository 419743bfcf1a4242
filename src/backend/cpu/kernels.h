// The CPU backend: its kernel list, fastest first, and the description of the CPU it runs on.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

struct BackendEntry;

const Backend& cpu_backend();
BackendEntry cpu_entry();  // of the registry

// This machine's processor with `threads` workers (0: one per core) and the best instruction set, or a lower
// one by name ("baseline", "avx2"). Throws Error(kUsage) for an instruction set that the processor lacks.
DeviceInfo cpu_device(int threads = 0, std::string_view isa = {});
// A CPU for planning alone, with any instruction set of this build, even one that this processor lacks.
// memory_bytes 0: this machine's memory.
DeviceInfo planned_cpu_device(int threads, std::string_view isa, size_t memory_bytes = 0);

}  // namespace vitrail
