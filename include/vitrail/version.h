/// \file
/// The version of the library and of these headers. Versions are semantic: before 1.0 the minor number
/// changes when a program must be changed or compiled anew, the patch number otherwise.
#pragma once

#include "vitrail/export.h"

#define VITRAIL_VERSION_MAJOR 0
#define VITRAIL_VERSION_MINOR 3
#define VITRAIL_VERSION_PATCH 0

namespace vitrail {

/// The version of the library that is running, as "0.3.0".
VITRAIL_API const char* version();

}  // namespace vitrail
