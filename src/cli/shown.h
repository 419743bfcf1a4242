// Names and labels from files as they may be shown: control characters never reach the terminal.
#pragma once

#include <algorithm>
#include <string>

#include "base/text.h"

namespace vitrail::cli {

// The text itself, or its quoted form when it is not plain.
inline std::string shown(const std::string& text) {
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  const bool plain = is_valid_utf8(text) && std::none_of(text.begin(), text.end(), control);
  return plain ? text : quoted(text);
}

}  // namespace vitrail::cli
