#include "measure/compare_models.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/decode.h"
#include "data/preprocess.h"
#include "io/cards/card_text.h"
#include "models/vit_init.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

std::vector<float> image_of(const std::string& image, const ModelCard& card) {
  const VitConfig& c = card.config;
  std::vector<float> input(static_cast<size_t>(c.channels * c.image_height * c.image_width));
  if (!image.empty())
    preprocess(load_image(image), card.preprocess, input);
  else
    fill_by_rule({"input", {{'B', 1}, {'C', c.channels}, {'Y', c.image_height}, {'X', c.image_width}}},
                 input);
  return input;
}

void refuse_other_shapes(const VitConfig& a, const VitConfig& b) {
  const auto shapes = [](const VitConfig& c) {
    std::vector<std::string> names;
    for (const ParamSpec& spec : vit_params(c)) names.push_back(spec.name + " " + to_string(spec.shape));
    return names;
  };
  const std::vector<std::string> of_a = shapes(a), of_b = shapes(b);
  for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
    VT_REQUIRE(of_a[i] == of_b[i], ErrorKind::kCheck,
               "the models have different parameters: A has %s, B has %s", of_a[i].c_str(), of_b[i].c_str());
  VT_REQUIRE(of_a.size() == of_b.size(), ErrorKind::kCheck, "A has %zu parameters, B has %zu", of_a.size(),
             of_b.size());
}

}  // namespace

ModelTrace trace_model(const TraceRequest& request) {
  const std::unique_ptr<OpenedModel> model = open_model(request.path, request.open);
  EngineOptions how = request.engine;
  how.batch = 1;
  how.layers = how.features = true;
  Engine engine(*model, how);
  ModelTrace result{model->card(), {}, engine.plan().program.nodes.size()};
  result.layers.emplace_back("images",
                             request.input ? *request.input : image_of(request.image, model->card()));
  engine.run(result.layers[0].second, 1);
  std::vector<std::string> names = {"embed"};
  for (int64_t i = 0; i < model->card().config.depth; ++i) names.push_back("blocks." + std::to_string(i));
  for (const char* name : {"tokens", "features", "logits"}) names.emplace_back(name);
  for (const std::string& name : names)
    if (engine.has_output(name)) result.layers.emplace_back(name, engine.output(name));
  return result;
}

LayerDifference difference_of(const std::string& name, const std::vector<float>& a,
                              const std::vector<float>& b) {
  VT_REQUIRE(a.size() == b.size(), ErrorKind::kCheck, "%s has %zu numbers in A and %zu in B", name.c_str(),
             a.size(), b.size());
  LayerDifference result{name, 0, 0};
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    const double apart = same ? 0 : std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    result.max = std::max(result.max, std::isnan(apart) ? INFINITY : apart);
    if (std::isfinite(a[i])) largest = std::max(largest, std::fabs(static_cast<double>(a[i])));
  }
  result.relative = result.max == 0 ? 0 : result.max / std::max(largest, 1e-30);
  return result;
}

ModelComparison compare_models(const ModelTrace& a, const ModelTrace& b, double tolerance) {
  refuse_other_shapes(a.card.config, b.card.config);
  ModelComparison found;
  found.facts = card_differences(a.card, b.card);
  for (size_t i = 0; i < std::min(a.layers.size(), b.layers.size()); ++i) {
    found.layers.push_back(difference_of(a.layers[i].first, a.layers[i].second, b.layers[i].second));
    if (found.first.empty() && found.layers.back().relative > tolerance)
      found.first = found.layers.back().name;
  }
  return found;
}

std::string verdict_of(const ModelComparison& found, double tolerance) {
  if (found.first.empty()) return "A and B compute the same";
  return strf("A and B differ from %s on, by more than %g of its values", found.first.c_str(), tolerance);
}

nlohmann::ordered_json to_json(const ModelComparison& found, double tolerance) {
  using nlohmann::ordered_json;
  ordered_json json = {
      {"same", found.first.empty()}, {"verdict", verdict_of(found, tolerance)}, {"tolerance", tolerance}};
  json["first"] = found.first.empty() ? ordered_json(nullptr) : ordered_json(found.first);
  json["card"] = found.facts;
  for (const LayerDifference& one : found.layers)
    json["layers"].push_back({{"name", one.name}, {"max_difference", one.max}, {"relative", one.relative}});
  return json;
}

std::string layer_table(const std::vector<LayerDifference>& layers, double tolerance) {
  Table table({{"layer"}, {"largest difference", Align::kRight}, {"relative", Align::kRight}, {""}});
  for (const LayerDifference& one : layers)
    table.row({one.name, format_significant(one.max), format_significant(one.relative),
               one.relative > tolerance ? "differs" : ""});
  return table.text();
}

}  // namespace vitrail
