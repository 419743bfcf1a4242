#include "io/checkpoint/facts.h"

#include <algorithm>
#include <map>

#include "base/json_text.h"

namespace vitrail {

std::vector<FactDifference> compare_facts(const Json& saved, const Json& now) {
  std::map<std::string, FactDifference> by_key;
  const auto collect = [&](const Json& facts, Json FactDifference::*side) {
    if (facts.empty()) return;  // flatten() would turn it into null
    const Json flat = facts.flatten();
    for (const auto& [key, value] : flat.items()) by_key[key].*side = value;
  };
  collect(saved, &FactDifference::saved);
  collect(now, &FactDifference::now);
  std::vector<FactDifference> differences;
  for (auto& [key, difference] : by_key) {
    if (difference.saved == difference.now) continue;
    difference.key = key.substr(1);
    std::replace(difference.key.begin(), difference.key.end(), '/', '.');
    differences.push_back(std::move(difference));
  }
  return differences;
}

std::string to_string(const FactDifference& difference) {
  const auto shown = [](const Json& value) { return value.is_null() ? "nothing" : json_text(value); };
  return difference.key + ": the checkpoint has " + shown(difference.saved) + ", this run has " +
         shown(difference.now);
}

}  // namespace vitrail
