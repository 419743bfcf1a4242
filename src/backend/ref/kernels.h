// The reference backend: plain loops in double for every op and float type, the oracle that all other kernels
// are compared with. It may be slow; it may not be wrong.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

struct BackendEntry;

const Backend& ref_backend();
BackendEntry ref_entry();  // of the registry

}  // namespace vitrail
