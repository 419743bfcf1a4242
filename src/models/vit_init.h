// Weights that no file holds: those a training starts from, those made by rule, and fixed positions as a
// table. Knows parameters by name and shape, no program and no device.
#pragma once

#include <span>
#include <vector>

#include "base/enum_names.h"
#include "models/vit_config.h"
#include "models/vit_params.h"

namespace vitrail {

// Weights to start training from, as timm and vit_jax draw them; every value is a function of (seed,
// parameter, element), whatever the order. Also the adapters' own start: A small and random, B zero.

// timm: matrices N(0, 0.02), patch embedding as torch's convolution. jax: Xavier-uniform matrices (q, k and v
// separately), LeCun patch embedding, MLP biases N(0, 1e-6), zero head.
enum class InitStyle { kTimm, kJax };
template <>
struct EnumNames<InitStyle> {
  static constexpr const char* names[] = {"timm", "jax"};
};

void init_param(const VitConfig& config, const ParamSpec& spec, InitStyle style, uint64_t seed,
                std::span<float> target);

// Weights by rule: an architecture's parameters without a file. A value depends only on its parameter's
// canonical name and its index, scaled so that logits are of order 1. tools/golden_rule.py computes the same
// bits.

// Fills all elements of the parameter; `target` holds spec.shape.elems() floats. The name "input" gives
// image tensors, shape [B C Y X].
void fill_by_rule(const ParamSpec& spec, std::span<float> target);

// Fixed positions as a table like any other, for weight files whose formats have no word for them.

// The config of a model that answers the same from a learned table; unchanged where there is one already, or
// none.
VitConfig with_learned_positions(VitConfig config);

// The table of a sincos2d model, [N D].
std::vector<float> fixed_positions(const VitConfig& config);

}  // namespace vitrail
