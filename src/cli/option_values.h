// The values of an option: a text that is none of them is refused with the nearest choice.
#pragma once

#include <string>

#include "base/error.h"
#include "base/values.h"
#include "cli/options.h"

namespace vitrail::cli {

// Throws unless `text` is a value of this option; `place` is how the user wrote it.
void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind);

}  // namespace vitrail::cli
