#include "api/attention_maps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vitrail {

namespace {
size_t tokens_of(const VitConfig& config) {
  return static_cast<size_t>(config.tokens());
}

// Returns the weights over tokens with which the walk through the layers starts: the class token, or the mean
// of all tokens.
std::vector<double> start_row(const VitConfig& config) {
  const size_t tokens = tokens_of(config);
  std::vector<double> row(tokens, config.class_token ? 0.0 : 1.0 / static_cast<double>(tokens));
  if (config.class_token) row[0] = 1;
  return row;
}

// Returns row * (mean over heads of weights).
std::vector<double> through_heads(const std::vector<double>& row, std::span<const float> weights,
                                  size_t heads) {
  const size_t tokens = row.size();
  VT_CHECK(weights.size() == heads * tokens * tokens, "%zu attention weights for %zu heads of %zu tokens",
           weights.size(), heads, tokens);
  std::vector<double> out(tokens, 0.0);
  for (size_t h = 0; h < heads; ++h)
    for (size_t n = 0; n < tokens; ++n) {
      if (row[n] == 0) continue;
      const float* from = weights.data() + (h * tokens + n) * tokens;
      for (size_t m = 0; m < tokens; ++m)
        out[m] += row[n] * static_cast<double>(from[m]) / static_cast<double>(heads);
    }
  return out;
}

PatchMap patches_of(const std::vector<double>& row, const VitConfig& config) {
  return {row.begin() + static_cast<long>(config.prefix_tokens()), row.end()};
}
}  // namespace

PatchMap head_map(std::span<const float> weights, const VitConfig& config, int64_t head) {
  const size_t per_head = tokens_of(config) * tokens_of(config);
  VT_CHECK(head >= 0 && head < config.heads &&
           weights.size() == per_head * static_cast<size_t>(config.heads));
  const auto one = weights.subspan(per_head * static_cast<size_t>(head), per_head);
  return patches_of(through_heads(start_row(config), one, 1), config);
}

PatchMap mean_map(std::span<const float> weights, const VitConfig& config) {
  return patches_of(through_heads(start_row(config), weights, static_cast<size_t>(config.heads)), config);
}

PatchMap rollout_map(const std::vector<std::vector<float>>& layers, const VitConfig& config) {
  // The product of the layers' matrices is computed row by row from the last layer, so that one vector is
  // enough.
  std::vector<double> row = start_row(config);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const std::vector<double> mixed = through_heads(row, *layer, static_cast<size_t>(config.heads));
    for (size_t i = 0; i < row.size(); ++i) row[i] = 0.5 * (row[i] + mixed[i]);
  }
  return patches_of(row, config);
}

PatchMap stretched(PatchMap map, double low, double high) {
  PatchMap sorted = map;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
  };
  const float bottom = at(low), range = at(high) - bottom;
  for (float& value : map) value = range > 0 ? std::clamp((value - bottom) / range, 0.0f, 1.0f) : 0.0f;
  return map;
}

double evenness(const PatchMap& map) {
  double total = 0, entropy = 0;
  for (const float value : map) total += static_cast<double>(value);
  if (!(total > 0) || map.size() < 2) return 0;
  for (const float value : map) {
    const double share = static_cast<double>(value) / total;
    if (share > 0) entropy -= share * std::log(share);
  }
  return entropy / std::log(static_cast<double>(map.size()));
}

}  // namespace vitrail
