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

bool lora_applies(const LoraConfig& config, const ParamSpec& weight) {
  if (config.rank == 0 || weight.block < 0 || weight.role != ParamRole::kMatrix) return false;
  return (config.attention && weight.part == ParamPart::kAttention) ||
         (config.mlp && weight.part == ParamPart::kMlp);
}

namespace {
LoraAdapter adapter_of(const ParamSpec& weight, Dim rank) {
  const std::string linear = weight.name.substr(0, weight.name.rfind('.'));
  const auto split = weight.shape.begin() + static_cast<std::ptrdiff_t>(weight.output_rank);
  std::vector<Dim> a(split, weight.shape.end()), b(weight.shape.begin(), split);
  a.insert(a.begin(), rank);
  b.push_back(rank);
  LoraAdapter adapter{weight, weight};
  adapter.a.name = linear + ".lora_a.weight";
  adapter.a.role = ParamRole::kLoraA;
  adapter.a.output_rank = 1;
  adapter.a.shape = Shape(std::move(a));
  adapter.b.name = linear + ".lora_b.weight";
  adapter.b.role = ParamRole::kLoraB;
  adapter.b.shape = Shape(std::move(b));
  return adapter;
}
}  // namespace

std::map<std::string, LoraAdapter> lora_adapters(const VitConfig& config, const LoraConfig& lora) {
  std::map<std::string, LoraAdapter> adapters;
  for (const ParamSpec& spec : vit_params(config))
    if (lora_applies(lora, spec)) adapters.emplace(spec.name, adapter_of(spec, {'R', lora.rank}));
  return adapters;
}

std::vector<ParamSpec> lora_params(const VitConfig& config, const LoraConfig& lora) {
  std::vector<ParamSpec> specs;
  for (const ParamSpec& spec : vit_params(config)) {
    if (!lora_applies(lora, spec)) continue;
    LoraAdapter adapter = adapter_of(spec, {'R', lora.rank});
    specs.push_back(std::move(adapter.a));
    specs.push_back(std::move(adapter.b));
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
