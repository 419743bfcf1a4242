#include "models/lora.h"

#include "base/error.h"

namespace vitrail {

void validate(const LoraConfig& config) {
  VT_REQUIRE(config.rank >= 0 && config.rank <= kMaxLoraRank, ErrorKind::kConfig,
             "lora.rank %lld is not between 0 and %lld", static_cast<long long>(config.rank),
             static_cast<long long>(kMaxLoraRank));
  VT_REQUIRE(config.rank == 0 || config.attention || config.mlp, ErrorKind::kConfig,
             "lora.rank %lld adapts nothing: set lora.attention or lora.mlp",
             static_cast<long long>(config.rank));
}

bool lora_applies(const LoraConfig& config, const std::string& product) {
  if (config.rank == 0 || !product.starts_with("blocks.")) return false;
  return (config.attention && (product.ends_with(".attn.qkv") || product.ends_with(".attn.proj"))) ||
         (config.mlp && (product.ends_with(".mlp.fc1") || product.ends_with(".mlp.fc2")));
}

namespace {
// Returns how many leading dims of a linear's weight are outputs.
size_t output_rank(const std::string& product) {
  return product.ends_with(".qkv") ? 3 : 1;
}
}  // namespace

std::vector<ParamSpec> lora_params(const VitConfig& config, const LoraConfig& lora) {
  std::vector<ParamSpec> specs;
  const Dim rank('R', lora.rank);
  for (const ParamSpec& spec : vit_params(config)) {
    constexpr std::string_view kWeight = ".weight";
    if (!spec.name.ends_with(kWeight)) continue;
    const std::string product = spec.name.substr(0, spec.name.size() - kWeight.size());
    if (!lora_applies(lora, product)) continue;
    const auto split = spec.shape.begin() + static_cast<std::ptrdiff_t>(output_rank(product));
    std::vector<Dim> a(split, spec.shape.end()), b(spec.shape.begin(), split);
    a.insert(a.begin(), rank);
    b.push_back(rank);
    specs.push_back({product + ".lora_a.weight", Shape(std::move(a))});
    specs.push_back({product + ".lora_b.weight", Shape(std::move(b))});
  }
  return specs;
}

void lora_merge(const LoraConfig& config, const float* a, const float* b, int64_t outputs, int64_t inputs,
                float* weight) {
  const double scale = config.alpha / static_cast<double>(config.rank);
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < config.rank; ++r)
        sum += static_cast<double>(b[n * config.rank + r]) * static_cast<double>(a[r * inputs + k]);
      weight[n * inputs + k] = static_cast<float>(static_cast<double>(weight[n * inputs + k]) + scale * sum);
    }
}

}  // namespace vitrail
