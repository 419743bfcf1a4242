// Aligned text tables with a header. Returns strings, prints nothing.
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

  // Adds a row of at most as many cells as columns; missing ones at the end are empty.
  void row(std::vector<std::string> cells);
  // Draws a line across the table, before totals.
  void rule();

  size_t rows() const { return rows_.size(); }
  // Returns lines ending in "\n", each indented by `indent` spaces, without trailing spaces.
  std::string text(size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

// Returns lines of "name  value", the values aligned, for summaries.
std::string format_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, size_t indent = 0);

}  // namespace vitrail
