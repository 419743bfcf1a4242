#include "cli/top_classes.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "telemetry/format.h"

namespace vitrail::cli {

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
