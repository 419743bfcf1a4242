#include "telemetry/table.h"

#include <algorithm>

#include "base/error.h"
#include "telemetry/format.h"

namespace vitrail {

namespace {
constexpr size_t kGap = 2;

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

void append_repeated(std::string& out, const char* piece, size_t times) {
  for (size_t i = 0; i < times; ++i) out += piece;
}
}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<std::string> cells) {
  VT_CHECK(!cells.empty() && cells.size() <= columns_.size(), "%zu cells for %zu columns", cells.size(),
           columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() {
  rows_.emplace_back();
}

std::string Table::text(size_t indent) const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& cells : rows_)
    for (size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], display_width(cells[c]));

  std::string out;
  const auto line = [&](auto&& cell) {
    std::string text(indent, ' ');
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& content = cell(c);
      const std::string space(widths[c] - display_width(content), ' ');
      text += columns_[c].align == Align::kRight ? space + content : content + space;
      text.append(kGap, ' ');
    }
    append_line(out, std::move(text));
  };
  const auto across = [&] {
    std::string text(indent, ' ');
    size_t cells = 0;
    for (const size_t width : widths) cells += width + kGap;
    append_repeated(text, "─", cells - kGap);
    append_line(out, std::move(text));
  };
  line([&](size_t c) -> const std::string& { return columns_[c].title; });
  across();
  for (const auto& cells : rows_)
    if (cells.empty())
      across();
    else
      line([&](size_t c) -> const std::string& { return cells[c]; });
  return out;
}

std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, size_t indent) {
  size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, display_width(name));
  std::string out;
  for (const auto& [name, value] : pairs)
    append_line(
        out, std::string(indent, ' ') + name + std::string(width - display_width(name) + kGap, ' ') + value);
  return out;
}

}  // namespace vitrail
