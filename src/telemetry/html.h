// Text and images made safe for a page: escaping, data addresses, tables. Knows nothing of what is shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/table.h"

namespace vitrail {

// Escapes for element content and quoted attributes. Invalid UTF-8 is shown in quoted form; control
// characters other than tab and newline, which HTML does not allow, become U+FFFD.
std::string html_escape(std::string_view text);

// Returns "data:image/png;base64,...".
std::string png_data_address(std::span<const uint8_t> png);

// The text of a cell is escaped; `key` (when not empty) is its sort key.
struct HtmlCell {
  std::string text, key;
};

struct HtmlTable {
  std::vector<Column> columns;
  std::vector<std::vector<HtmlCell>> rows;
  bool sortable = false;
};
std::string html_table(const HtmlTable& table);

}  // namespace vitrail
