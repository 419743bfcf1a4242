// Names and labels from files as they may be shown: control characters never reach the terminal.
#pragma once

#include <string>

#include "base/text.h"

namespace vitrail::cli {

// The text itself, or its quoted form when it is not plain.
inline std::string shown(const std::string& text) {
  return is_printable(text) ? text : quoted(text);
}

}  // namespace vitrail::cli
