// Labels of a flat folder of images, from a CSV: `filename,label` (one class each), `filename,labels` (any
// number, separated by ;) or `filename,NAME,NAME...` with 0 or 1 per cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

struct LabelRow {
  std::string file;
  std::vector<std::string> labels;
};

struct LabelSheet {
  bool multi_label = false;
  std::vector<std::string> classes;  // from the header, for 0/1 columns; a class may have no image
  std::vector<LabelRow> rows;
};

// Throws Error(kData) with the line number.
LabelSheet parse_labels(std::string_view csv);

}  // namespace vitrail
