#include "cli/top_classes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "telemetry/format.h"

namespace vitrail::cli {

std::vector<TopClass> top_classes(std::span<const float> probabilities,
                                  const std::vector<std::string>& labels, int64_t count) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t wanted = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  // Something that is not a number comes last, so that the order stays one.
  const auto key = [&](size_t i) { return probabilities[i] == probabilities[i] ? probabilities[i] : -1.0f; };
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(wanted), order.end(),
                    [&](size_t a, size_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  std::vector<TopClass> top;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t index = order[i];
    top.push_back({static_cast<int64_t>(index),
                   index < labels.size() ? labels[index] : strf("class %zu", index), probabilities[index]});
  }
  return top;
}

std::string top_classes_text(const std::vector<TopClass>& top, size_t indent) {
  constexpr int kBarCells = 20;
  std::string text;
  for (const TopClass& one : top)
    text += strf("%*s%6.2f %%  %s  %5lld  %s\n", static_cast<int>(indent), "", one.probability * 100,
                 format_bar(one.probability, kBarCells).c_str(), static_cast<long long>(one.index),
                 shown(one.label).c_str());
  return text;
}

nlohmann::ordered_json top_classes_json(const std::vector<TopClass>& top) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TopClass& one : top)
    list.push_back({{"class", one.index}, {"label", one.label}, {"prob", one.probability}});
  return list;
}

}  // namespace vitrail::cli
