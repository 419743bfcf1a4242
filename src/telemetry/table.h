// Aligned text tables with a header, for every command that shows rows. Returns strings, prints nothing.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // As many cells as columns; missing ones at the end are empty.
  void row(std::vector<std::string> cells);
  // A line across the table, before totals.
  void rule();

  size_t rows() const { return rows_.size(); }
  // Lines ending in "\n", every line indented by `indent` spaces, no spaces at the end of a line.
  std::string text(size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// Lines of "name  value", the values aligned: what cards and summaries are made of.
std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, size_t indent = 0);

}  // namespace vitrail
