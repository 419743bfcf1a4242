// Initial weights for training, as timm and vit_jax draw them; every value is a function of (seed, parameter,
// element), whatever the order. LoRA adapters start with A small and random, B zero.
#pragma once

#include <span>

#include "base/enum_names.h"
#include "models/vit_params.h"

namespace vitrail {

// timm: matrices N(0, 0.02), patch embedding as torch's convolution. jax: Xavier-uniform matrices (q, k and v
// separately), LeCun patch embedding, MLP biases N(0, 1e-6), zero head.
enum class InitStyle { kTimm, kJax };
template <>
struct EnumNames<InitStyle> {
  static constexpr const char* names[] = {"timm", "jax"};
};

void init_param(const VitConfig& config, const ParamSpec& spec, InitStyle style, uint64_t seed,
                std::span<float> target);

}  // namespace vitrail
