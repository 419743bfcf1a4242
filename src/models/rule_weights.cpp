// Weights computed from a parameter's name and an element's index: the same everywhere, without a file.
#include "models/vit_init.h"

#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/rng.h"

namespace vitrail {

namespace {

constexpr float kByFanIn = 0;  // stands for sqrt(3 / fan_in), which keeps unit variance

struct Rule {
  std::string_view ending;
  float offset, scale;
};

// The first suffix that matches applies.
constexpr Rule kRules[] = {
    {"input", 0.0f, 1.5f},       {"_token", 0.0f, 0.5f},       {"pos_embed", 0.0f, 0.5f},
    {"latent", 0.0f, 0.5f},      {".gamma", 0.5f, 0.2f},       {".bias", 0.0f, 0.1f},
    {"norm.weight", 1.0f, 0.2f}, {"norm1.weight", 1.0f, 0.2f}, {"norm2.weight", 1.0f, 0.2f},
    {".weight", 0.0f, kByFanIn},
};

const Rule& find_rule(std::string_view name) {
  for (const Rule& rule : kRules)
    if (name.ends_with(rule.ending)) return rule;
  throw Error(ErrorKind::kInternal, strf("no weight rule for \"%s\"", std::string(name).c_str()));
}

// Returns the number of inputs; outputs come first: [T H E] or [H E] of a packed projection, else one dim.
int64_t fan_in(const Shape& shape) {
  int64_t outputs = 1;
  size_t i = 0;
  for (; i < shape.rank() && std::string_view("THE").find(shape[i].name) != std::string_view::npos; ++i)
    outputs *= shape[i].extent;
  return shape.elems() / (i > 0 ? outputs : shape[0].extent);
}

}  // namespace

void fill_by_rule(const ParamSpec& spec, std::span<float> target) {
  VT_CHECK(static_cast<int64_t>(target.size()) == spec.shape.elems(), "%s: %zu floats for %lld elements",
           spec.name.c_str(), target.size(), static_cast<long long>(spec.shape.elems()));
  const Rule& rule = find_rule(spec.name);
  float scale = rule.scale;
  if (scale == kByFanIn) scale = static_cast<float>(std::sqrt(3.0 / static_cast<double>(fan_in(spec.shape))));
  const uint64_t key = name_key(spec.name);
  // In f64 the product is exact: the same bits whether or not the compiler fuses multiply and add.
  for (size_t i = 0; i < target.size(); ++i)
    target[i] = static_cast<float>(static_cast<double>(rule.offset) +
                                   static_cast<double>(scale) * static_cast<double>(counter_uniform(key, i)));
}

}  // namespace vitrail
