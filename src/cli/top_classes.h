// The likeliest classes of a picture, for people and scripts. Used by predict and explain.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace vitrail::cli {

struct TopClass {
  int64_t index = 0;
  std::string label;
  double probability = 0;
};

// Likeliest first; equal ones by index. A class without a label is called "class 17".
std::vector<TopClass> top_classes(std::span<const float> probabilities,
                                  const std::vector<std::string>& labels, int64_t count);

std::string top_classes_text(const std::vector<TopClass>& top, size_t indent);
// [{"class", "label", "prob"}]
nlohmann::ordered_json top_classes_json(const std::vector<TopClass>& top);

}  // namespace vitrail::cli
