// Text and images made safe for a page: escaping, data addresses, tables. Knows nothing of what is shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/table.h"

namespace vitrail {

// For element content and quoted attributes. What is no valid UTF-8 is shown in quoted form; control
// characters other than tab and newline, which no page may hold, become U+FFFD.
std::string html_escape(std::string_view text);

// "data:image/png;base64,..."
std::string png_data_address(std::span<const uint8_t> png);

// A cell's text is escaped; `key` (when not empty) is what it is sorted by instead.
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
