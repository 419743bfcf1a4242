#include "api/explain.h"

#include "api/classify.h"
#include "base/text.h"

namespace vitrail {

namespace {

std::vector<float> weights_of(const Engine& engine, int64_t block) {
  std::vector<float> values = engine.output("blocks." + std::to_string(block) + ".attention");
  require_finite(values, "attention weights");
  return values;
}

}  // namespace

AttentionRequest attention_request(const std::string& method, int64_t layer, const VitConfig& config,
                                   const char* setting) {
  const auto wants = [&](const char* name) { return method == "all" || method == name; };
  const AttentionRequest request{wants("heads"), wants("mean"), wants("rollout"),
                                 layer == -1 ? config.depth - 1 : layer};
  VT_REQUIRE(request.one_block() || request.rollout, ErrorKind::kUsage,
             "expected the maps heads, mean, rollout or all, found %s", quoted(method).c_str());
  VT_REQUIRE(request.layer >= 0, ErrorKind::kUsage,
             "%s is %lld: expected a block from 0 to %lld, or -1: the last", setting,
             static_cast<long long>(layer), static_cast<long long>(config.depth - 1));
  VT_REQUIRE(request.layer < config.depth, ErrorKind::kUsage,
             "%s is %lld, but the model has blocks 0 to %lld", setting, static_cast<long long>(request.layer),
             static_cast<long long>(config.depth - 1));
  return request;
}

EngineOptions options_for(const AttentionRequest& request, EngineOptions options) {
  options.batch = 1;
  options.attention = true;
  options.attention_block = request.rollout ? -1 : request.layer;
  return options;
}

std::vector<NamedMap> attention_maps(const Engine& engine, const AttentionRequest& request) {
  const VitConfig& config = engine.config();
  std::vector<NamedMap> maps;
  const std::vector<float> chosen =
      request.one_block() ? weights_of(engine, request.layer) : std::vector<float>();
  const std::string block = strf("block %lld ", static_cast<long long>(request.layer));
  if (request.mean) maps.push_back({"mean", block + "mean", mean_map(chosen, config)});
  if (request.rollout) {
    std::vector<std::vector<float>> layers;
    for (int64_t i = 0; i < config.depth; ++i) layers.push_back(weights_of(engine, i));
    maps.push_back({"rollout", "rollout", rollout_map(layers, config)});
  }
  for (int64_t head = 0; request.heads && head < config.heads; ++head) {
    const auto number = static_cast<long long>(head);
    maps.push_back(
        {strf("head-%02lld", number), block + strf("head %lld", number), head_map(chosen, config, head)});
  }
  return maps;
}

}  // namespace vitrail
