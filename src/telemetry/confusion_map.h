// A confusion matrix as a heat map: rows are true classes, columns predictions, each cell coloured by its
// share of the row, right ones in another colour than wrong ones.
#pragma once

#include <string>
#include <vector>

#include "telemetry/confusion.h"
#include "telemetry/plot/plot.h"

namespace vitrail {

// The most classes for which a heat map is readable; more are better shown as a list of the most confused
// pairs.
inline constexpr int64_t kMostHeatMapClasses = 40;

// `names` holds one per class; missing ones are numbered.
HeatMap confusion_map(const ConfusionMatrix& matrix, const std::vector<std::string>& names);

// Returns a class's label: its name or "class 7".
std::string class_label(const std::vector<std::string>& names, int64_t index);

}  // namespace vitrail
