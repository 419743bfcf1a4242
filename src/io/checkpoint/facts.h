// Comparison of the facts of two runs: what a checkpoint was made with, and what would continue it. Must not
// know which facts matter.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace vitrail {

// A difference between two sets of facts, by dotted key; one side is null where the key is missing there.
struct FactDifference {
  std::string key;
  Json saved, now;
};
std::vector<FactDifference> compare_facts(const Json& saved, const Json& now);
std::string to_string(const FactDifference& difference);

}  // namespace vitrail
