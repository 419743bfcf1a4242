#include "models/vit_init.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace vitrail {

namespace {

double uniform01(uint64_t key, uint64_t index) {
  return (static_cast<double>(counter_hash(key, index) >> 11) + 0.5) * 0x1p-53;
}
double normal(uint64_t key, uint64_t index) {
  return std::sqrt(-2 * std::log(uniform01(key, 2 * index))) *
         std::cos(2 * M_PI * uniform01(key, 2 * index + 1));
}

// A normal of this deviation after cutting at two deviations, as Flax's lecun_normal draws it.
double cut_normal(uint64_t key, uint64_t index, double deviation) {
  constexpr double kShrunk = 0.87962566103423978;  // of a unit normal cut at +-2
  for (uint64_t attempt = 0;; ++attempt) {
    const double value = normal(counter_hash(key, attempt), index);
    if (std::abs(value) <= 2) return value * deviation / kShrunk;
  }
}

struct Draw {
  std::span<float> target;
  uint64_t key;

  template <typename F>
  void each(F&& f) const {
    for (size_t i = 0; i < target.size(); ++i) target[i] = static_cast<float>(f(i));
  }
  void constant(float value) const { std::fill(target.begin(), target.end(), value); }
  void gauss(double deviation) const {
    each([&](size_t i) { return deviation * normal(key, i); });
  }
  void uniform(double bound) const {
    each([&](size_t i) { return bound * (2 * uniform01(key, i) - 1); });
  }
};

// Inputs of a matrix: what is left after its outputs ([D C P Q], [T H E D], [D H E], [F D]).
int64_t inputs_of(const ParamSpec& spec) {
  const bool heads_out = spec.name.ends_with(".qkv.weight") || spec.name.ends_with("attn_pool.q.weight") ||
                         spec.name.ends_with("attn_pool.kv.weight");
  return heads_out ? spec.shape.dims().back().local : spec.shape.elems() / spec.shape[0].local;
}

void init_patches(const ParamSpec& spec, InitStyle style, const Draw& draw) {
  if (spec.name.ends_with(".bias")) return draw.constant(0);
  const double root = 1.0 / std::sqrt(static_cast<double>(inputs_of(spec)));
  if (style == InitStyle::kTimm) return draw.uniform(root);  // torch's default of a convolution
  draw.each([&](size_t i) { return cut_normal(draw.key, i, root); });
}

void init_matrix(const ParamSpec& spec, InitStyle style, const Draw& draw) {
  if (style == InitStyle::kTimm) return draw.gauss(0.02);
  if (spec.name.starts_with("head")) return draw.constant(0);
  const int64_t inputs = inputs_of(spec);
  int64_t outputs = spec.shape.elems() / inputs;
  if (spec.shape.has('T')) outputs /= spec.shape.local('T');  // q, k and v each on its own
  draw.uniform(std::sqrt(6.0 / static_cast<double>(inputs + outputs)));
}

}  // namespace

void init_param(const ParamSpec& spec, InitStyle style, uint64_t seed, std::span<float> target) {
  const Draw draw{target, counter_hash(name_key(spec.name), seed)};
  const std::string& name = spec.name;
  const auto ends = [&](const char* text) { return name.ends_with(text); };
  if (ends("lora_b.weight")) return draw.constant(0);
  if (ends("lora_a.weight"))
    return draw.uniform(1.0 / std::sqrt(static_cast<double>(spec.shape.elems() / spec.shape[0].local)));
  if (name.starts_with("patch_embed.")) return init_patches(spec, style, draw);
  if (name == "pos_embed" || ends(".latent")) return draw.gauss(0.02);
  if (name == "cls_token" || name == "dist_token" || name == "reg_token")
    return style == InitStyle::kTimm ? draw.gauss(1e-6) : draw.constant(0);
  if (ends(".gamma")) return draw.constant(1e-5f);
  if (spec.name.find("norm") != std::string::npos) return draw.constant(ends(".weight") ? 1.0f : 0.0f);
  if (ends(".weight")) return init_matrix(spec, style, draw);
  if (style == InitStyle::kJax && name.find(".mlp.") != std::string::npos) return draw.gauss(1e-6);
  draw.constant(0);
}

}  // namespace vitrail
