// Reports what a dataset holds, as `data stats` shows it: samples a class, sizes, mean and deviation of the
// channels. Reads no image and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/statistics.h"

namespace vitrail {

struct DatasetReport {
  std::string name, part;
  const Dataset& data;
  DatasetStatistics found;
  std::vector<int64_t> counts;  // samples of each class
};

nlohmann::ordered_json to_json(const DatasetReport& report);
// Returns facts, then the first `rows` classes.
std::string to_text(const DatasetReport& report, size_t rows);

}  // namespace vitrail
