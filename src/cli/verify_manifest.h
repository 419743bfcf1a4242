// `verify --manifest`: a model folder or checkpoint against its manifest of checksums.
#pragma once

#include "cli/console.h"
#include "cli/options.h"

namespace vitrail::cli {

// Throws Error(kData) naming the first file that differs from its checksum; with --update, writes the
// manifest anew.
void verify_manifest(const Options& options, Console& console);

}  // namespace vitrail::cli
