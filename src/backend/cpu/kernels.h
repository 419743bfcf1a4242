// The CPU backend: its kernel list, fastest first, and the description of the CPU it runs on.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

const Backend& cpu_backend();

// This machine's processor with `threads` workers (0: one per core) and the best instruction set, or a lower
// one by name ("baseline", "avx2"). Error(kUsage) for a level the processor lacks.
DeviceInfo cpu_device(int threads = 0, std::string_view isa = {});

}  // namespace vitrail
