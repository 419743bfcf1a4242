// The reference backend: plain loops in double over every op and float type, the oracle of all others. It may
// be slow; it may not be wrong.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

const Backend& ref_backend();

}  // namespace vitrail
