// A table's text without its padding, so that a test states the cells and not their widths.
#pragma once

#include <string>

namespace vitrail {

// Returns the text with runs of spaces as one, none at the beginning of a line.
inline std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ' && out.back() != '\n')) out += c;
  return out;
}

}  // namespace vitrail
