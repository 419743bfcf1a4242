// A confusion matrix as an image: rows are true classes, columns predictions, each cell coloured by its
// share of the row. Colours are the page's (classes right and wrong).
#pragma once

#include <string>
#include <vector>

#include "telemetry/confusion.h"

namespace vitrail {

// More classes than this are better shown as a list of the most confused pairs.
inline constexpr int64_t kMostHeatMapClasses = 40;

// `names`: one a class; missing ones are numbered.
std::string heat_map(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

// A class as shown: its name or "class 7".
std::string class_label(const std::vector<std::string>& names, int64_t index);

}  // namespace vitrail
