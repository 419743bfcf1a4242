// Reads a CSV file that gives images one or several labels.
#include "data/datasets/file_formats.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

// Splits CSV into records: fields in double quotes may hold commas, line ends and doubled quotes.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  int line() const { return start_; }  // where the last record begins

  // Reads the next record; false at the end. Empty lines are skipped.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) skip();
    if (at_ >= text_.size()) return false;
    start_ = line_;
    fields.clear();
    do fields.push_back(field());
    while (take(','));
    take('\r');
    VT_REQUIRE(take('\n') || at_ >= text_.size(), ErrorKind::kData, "line %d: text after a closing quote",
               line_);
    return true;
  }

 private:
  void skip() { line_ += text_[at_++] == '\n'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    skip();
    return true;
  }

  std::string field() {
    std::string value;
    if (!take('"')) {
      while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r')
        value += text_[at_++];
      return value;
    }
    for (const int start = line_;;) {
      VT_REQUIRE(at_ < text_.size(), ErrorKind::kData, "line %d: a quote is never closed", start);
      if (!take('"')) {
        value += text_[at_];
        skip();
      } else if (take('"')) {
        value += '"';
      } else {
        return value;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, start_ = 1;
};

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> split_labels(const std::string& cell) {
  std::vector<std::string> labels;
  std::set<std::string> seen;
  size_t begin = 0;
  while (begin <= cell.size()) {
    const size_t end = std::min(cell.find(';', begin), cell.size());
    std::string label = trimmed(cell.substr(begin, end - begin));
    if (!label.empty() && seen.insert(label).second) labels.push_back(std::move(label));
    begin = end + 1;
  }
  return labels;
}

std::vector<std::string> marked_labels(const std::vector<std::string>& cells,
                                       const std::vector<std::string>& classes, int line) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::string cell = trimmed(cells[i + 1]);
    VT_REQUIRE(cell == "0" || cell == "1", ErrorKind::kData, "line %d, column %s: expected 0 or 1, found %s",
               line, quoted(classes[i]).c_str(), quoted(cell).c_str());
    if (cell == "1") labels.push_back(classes[i]);
  }
  return labels;
}

// Requires a plain relative path that stays below its folder.
void check_file(const std::string& file, int line) {
  bool inside = !file.empty() && file[0] != '/' && file.find('\0') == std::string::npos;
  for (size_t begin = 0; inside && begin <= file.size();) {
    const size_t end = std::min(file.find('/', begin), file.size());
    inside = file.substr(begin, end - begin) != "..";
    begin = end + 1;
  }
  VT_REQUIRE(inside, ErrorKind::kData, "line %d: expected a file below the folder of the CSV, found %s", line,
             quoted(file).c_str());
}

struct LabelsOfLine {
  std::vector<std::string> labels;
  int line;
};

// A file may stand there twice, so as to be seen twice, but not with other labels.
void require_agreement(const LabelRow& row, int line, std::map<std::string, LabelsOfLine>& known) {
  const auto& [labels, first] = known.try_emplace(row.file, LabelsOfLine{row.labels, line}).first->second;
  VT_REQUIRE(labels == row.labels, ErrorKind::kData, "line %d: %s has other labels in line %d", line,
             quoted(row.file).c_str(), first);
}

}  // namespace

LabelSheet parse_labels(std::string_view csv) {
  if (csv.starts_with("\xEF\xBB\xBF")) csv.remove_prefix(3);
  VT_REQUIRE(is_valid_utf8(csv), ErrorKind::kData, "not UTF-8 text");
  CsvReader reader(csv);
  std::vector<std::string> cells;
  const bool any = reader.next(cells);
  if (!any || cells.size() < 2 || trimmed(cells[0]) != "filename")
    throw Error(ErrorKind::kData,
                "expected the header filename,label or filename,labels or filename,NAME,NAME...",
                "write it as the first line; a folder a class needs no such file: take it away");
  const size_t columns = cells.size();
  const std::string second = trimmed(cells[1]);
  const bool one = columns == 2 && second == "label", listed = columns == 2 && second == "labels";
  LabelSheet sheet;
  sheet.multi_label = !one;
  for (size_t i = 1; i < columns && !one && !listed; ++i) sheet.classes.push_back(trimmed(cells[i]));
  const std::set<std::string> distinct(sheet.classes.begin(), sheet.classes.end());
  VT_REQUIRE(distinct.size() == sheet.classes.size() && !distinct.count(""), ErrorKind::kData,
             "the header names a class twice or not at all");
  std::map<std::string, LabelsOfLine> known;
  while (reader.next(cells)) {
    const int line = reader.line();
    VT_REQUIRE(cells.size() == columns, ErrorKind::kData, "line %d: %zu cells, the header has %zu", line,
               cells.size(), columns);
    LabelRow row{cells[0], {}};
    check_file(row.file, line);
    if (one)
      row.labels = {trimmed(cells[1])};
    else
      row.labels = listed ? split_labels(cells[1]) : marked_labels(cells, sheet.classes, line);
    VT_REQUIRE(!one || !row.labels[0].empty(), ErrorKind::kData, "line %d: no label", line);
    require_agreement(row, line, known);
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

}  // namespace vitrail
