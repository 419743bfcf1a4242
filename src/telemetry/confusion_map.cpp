#include "telemetry/confusion_map.h"

#include <cmath>

#include "base/error.h"
#include "telemetry/format.h"

namespace vitrail {

std::string class_label(const std::vector<std::string>& names, int64_t index) {
  const auto i = static_cast<size_t>(index);
  return i < names.size() && !names[i].empty() ? names[i] : strf("class %zu", i);
}

HeatMap confusion_map(const ConfusionMatrix& matrix, const std::vector<std::string>& names) {
  HeatMap map{.title = "Confusion matrix"};
  for (int64_t row = 0; row < matrix.classes(); ++row) {
    map.rows.push_back(class_label(names, row));
    for (int64_t column = 0; column < matrix.classes(); ++column) {
      const int64_t count = matrix.at(row, column);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(matrix.of(row).count);
      // The square root makes rare confusions visible.
      map.cells.push_back({.row = static_cast<size_t>(row),
                           .column = static_cast<size_t>(column),
                           .strength = 0.08 + 0.92 * std::sqrt(share),
                           .colour = row == column ? 0 : 1,
                           .text = count < 10000 ? strf("%lld", static_cast<long long>(count))
                                                 : format_si(static_cast<double>(count)),
                           .tip = class_label(names, row) + " → " + class_label(names, column) + ": " +
                                  format_integer(count) + " (" + format_percent(share) + ")"});
    }
  }
  map.columns = map.rows;
  return map;
}

}  // namespace vitrail
