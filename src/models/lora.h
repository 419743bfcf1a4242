// Low-rank adapters (LoRA): W x + (alpha / rank) B A x on chosen linears, A [R in], B [out R]. The model
// records them as nodes of their own; they can be merged into the weights when a model is saved.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/vit_params.h"

namespace vitrail {

constexpr int64_t kMaxLoraRank = 4096;

struct LoraConfig {
  int64_t rank = 0;  // 0: none
  double alpha = 16;
  bool attention = true;
  bool mlp = false;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("rank", c.rank, "rank of the adapters; 0 trains without");
    v("alpha", c.alpha, "adapters are scaled by alpha / rank");
    v("attention", c.attention, "on qkv and proj");
    v("mlp", c.mlp, "on fc1 and fc2");
  }
  bool operator==(const LoraConfig&) const = default;
};

void validate(const LoraConfig& config);

// Returns whether a linear of the blocks has an adapter, by its weight.
bool lora_applies(const LoraConfig& config, const ParamSpec& weight);

// The adapter of a linear: "<linear>.lora_a.weight" [R ...inputs] and "<linear>.lora_b.weight" [...outputs
// R].
struct LoraAdapter {
  ParamSpec a, b;
};
// Returns all adapters by the names of the weights they adapt, and their parameters in the model's order.
std::map<std::string, LoraAdapter> lora_adapters(const VitConfig& config, const LoraConfig& lora);
std::vector<ParamSpec> lora_params(const VitConfig& config, const LoraConfig& lora);

// Computes weight += alpha / rank * B A, all row-major as in the parameter table.
void lora_merge(const LoraConfig& config, const float* a, const float* b, int64_t outputs, int64_t inputs,
                float* weight);

}  // namespace vitrail
