// Cases of tests/golden/cases: a ViT's config, weights by rule, and the logits a published library gives for
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/config_json.h"
#include "io/model_files.h"
#include "io/weight_resize.h"
#include "models/vit_init.h"
#include "source_root.h"

namespace vitrail::golden {

inline std::filesystem::path folder() {
  return std::filesystem::path(VT_SOURCE_DIR) / "tests" / "golden";
}

struct Case {
  std::string name;
  VitConfig config;
  VitConfig base;  // the size the position table was made for
  int64_t batch = 1;
  std::vector<double> logits;  // float64 forward of the library
  Json json;
};

inline Json read(const std::filesystem::path& path) {
  return parse_json(read_file(path.string(), 64 << 20), path.string(), {.max_bytes = 64 << 20});
}

inline Case load(const std::filesystem::path& path) {
  Case c{.json = read(path)};
  c.name = c.json.at("name");
  from_json(c.json.at("config"), path.string(), &c.config);
  c.base = c.config;
  if (c.json.contains("base")) {
    c.base.image_height = c.json["base"].at("image_height");
    c.base.image_width = c.json["base"].at("image_width");
  }
  c.batch = c.json.at("batch");
  if (c.json.contains("logits")) c.logits = c.json["logits"].get<std::vector<double>>();
  return c;
}

inline std::vector<std::filesystem::path> all_cases() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "cases"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The rule's images, planar [B C Y X].
inline std::vector<float> images(const VitConfig& c, int64_t batch) {
  std::vector<float> values(static_cast<size_t>(batch * c.channels * c.image_height * c.image_width));
  fill_by_rule({"input", {{'B', batch}, {'C', c.channels}, {'Y', c.image_height}, {'X', c.image_width}}},
               values);
  return values;
}

// An opened model whose parameters follow the rule, positions resized as its config says.
class RuleModel : public OpenedModel {
 public:
  explicit RuleModel(const Case& c) : base_(c.base) { card_.config = c.config; }

  void read_param(const ParamSpec& spec, std::span<float> target) const override {
    const PosGrid from{base_.grid_height(), base_.grid_width()};
    const PosGrid to{card_.config.grid_height(), card_.config.grid_width()};
    if (spec.name != "pos_embed" || from == to) return fill_by_rule(spec, target);
    const int64_t prefix = base_.pos_prefix_rows(), width = base_.width;
    std::vector<float> table(static_cast<size_t>((prefix + from.cells()) * width));
    fill_by_rule({spec.name, {{'N', prefix + from.cells()}, {'D', width}}}, table);
    resize_positions(card_.config.pos_resize, table, from, target, to, prefix, width);
  }

 private:
  VitConfig base_;
};

// Returns the largest |a - b|; infinite when sizes differ or a value is NaN, so that no bound accepts it.
template <typename A, typename B>
double largest_difference(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

}  // namespace vitrail::golden
