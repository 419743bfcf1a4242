#include "telemetry/html.h"

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {
std::string base64(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < here ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= here ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string cell_html(const HtmlCell& cell, const Column& column) {
  const std::string key = cell.key.empty() ? "" : " data-key=\"" + html_escape(cell.key) + "\"";
  const std::string align = column.align == Align::kRight ? " class=\"n\"" : "";
  return "<td" + align + key + ">" + html_escape(cell.text) + "</td>";
}
}  // namespace

std::string html_escape(std::string_view text) {
  if (!is_valid_utf8(text)) return html_escape(quoted(text));
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += control ? "\xEF\xBF\xBD" : std::string(1, c);
    }
  }
  return out;
}

std::string png_data_address(std::span<const uint8_t> png) {
  return "data:image/png;base64," + base64(png);
}

std::string html_table(const HtmlTable& table) {
  std::string out = table.sortable ? "<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>"
                                   : "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const Column& column : table.columns) {
    const std::string title = html_escape(column.title);
    const char* align = column.align == Align::kRight ? " class=\"n\"" : "";
    out += strf("<th scope=\"col\"%s>", align) +
           (table.sortable ? "<button type=\"button\">" + title + "</button>" : title) + "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    VT_CHECK(row.size() == table.columns.size(), "%zu cells for %zu columns", row.size(),
             table.columns.size());
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) out += cell_html(row[c], table.columns[c]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace vitrail
