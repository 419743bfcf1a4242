// The values an option may take: reading them and refusing the others with the nearest choice. Used by the
// option registry only.
#pragma once

#include <string>

#include "base/error.h"
#include "base/values.h"
#include "cli/options.h"

namespace vitrail::cli {

// Throws unless `text` is a value this option takes; `place` is how the user wrote it.
void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind);

}  // namespace vitrail::cli
