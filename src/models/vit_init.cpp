#include "models/vit_init.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "ops/sincos_positions.h"

namespace vitrail {

namespace {

// The standard deviation of a unit normal truncated at +-2.
constexpr double kCutDeviation = 0.87962566103423978;

struct Draw {
  std::span<float> target;
  uint64_t key;

  void constant(float value) const { std::fill(target.begin(), target.end(), value); }
  void uniform(double bound) const {
    for (size_t i = 0; i < target.size(); ++i)
      target[i] = static_cast<float>(bound * (2 * uniform01(key, i) - 1));
  }
  void gauss(double deviation) const { scaled(draw_normals, deviation); }
  // Draws timm's trunc_normal_tf_: the scale is that of the normal before truncation.
  void cut_gauss(double scale) const { scaled(draw_cut_normals, scale); }

 private:
  void scaled(void (*draw)(uint64_t, uint64_t, std::span<double>), double scale) const {
    std::array<double, 1024> block;
    for (size_t first = 0; first < target.size(); first += block.size()) {
      const std::span values = std::span(block).first(std::min(block.size(), target.size() - first));
      draw(key, first, values);
      for (size_t i = 0; i < values.size(); ++i) target[first + i] = static_cast<float>(scale * values[i]);
    }
  }
};

double root_of(int64_t count) {
  return std::sqrt(static_cast<double>(count));
}

// Returns the fan-in of a matrix: the dims after its outputs ([D C P Q], [T H E D], [D H E], [F D]).
int64_t inputs_of(const ParamSpec& spec) {
  int64_t outputs = 1;
  for (size_t i = 0; i < spec.output_rank; ++i) outputs *= spec.shape[i].local;
  return spec.shape.elems() / outputs;
}

// Draws LeCun normal, Flax's default for a layer.
void lecun_normal(const ParamSpec& spec, const Draw& draw) {
  draw.cut_gauss(1 / root_of(inputs_of(spec)) / kCutDeviation);
}

// timm leaves torch's default for a convolution: weights and bias alike by the fan-in.
void init_patches(const VitConfig& config, const ParamSpec& spec, InitStyle style, const Draw& draw) {
  if (style == InitStyle::kTimm)
    return draw.uniform(1 / root_of(config.channels * config.patch * config.patch_columns()));
  if (spec.role == ParamRole::kBias) return draw.constant(0);
  lecun_normal(spec, draw);
}

void init_matrix(const ParamSpec& spec, InitStyle style, const Draw& draw) {
  if (style == InitStyle::kTimm) return draw.gauss(0.02);
  if (spec.part == ParamPart::kHead) return draw.constant(0);
  if (spec.part == ParamPart::kPreLogits) return lecun_normal(spec, draw);
  const int64_t inputs = inputs_of(spec);
  int64_t outputs = spec.shape.elems() / inputs;
  if (spec.shape.has('T')) outputs /= spec.shape.local('T');  // q, k and v separately
  draw.uniform(std::sqrt(6.0 / static_cast<double>(inputs + outputs)));
}

// The class token starts near zero; DeiT's distillation token is drawn like positions.
void init_token(double deviation, InitStyle style, const Draw& draw) {
  if (style == InitStyle::kJax) return draw.constant(0);
  draw.gauss(deviation);
}

// The query of attention pooling: big_vision's Xavier counts a fan-in of one per value.
void init_latent(int64_t width, InitStyle style, const Draw& draw) {
  if (style == InitStyle::kJax) return draw.uniform(std::sqrt(6.0 / static_cast<double>(1 + width)));
  draw.cut_gauss(1 / root_of(width));
}

}  // namespace

void init_param(const VitConfig& config, const ParamSpec& spec, InitStyle style, uint64_t seed,
                std::span<float> target) {
  const Draw draw{target, counter_hash(name_key(spec.name), seed)};
  VT_CHECK(spec.part != ParamPart::kUnlisted, "%s is not from the parameter table", spec.name.c_str());
  if (spec.part == ParamPart::kPatches) return init_patches(config, spec, style, draw);
  switch (spec.role) {
    case ParamRole::kLoraA:
      return draw.uniform(1 / root_of(inputs_of(spec)));
    case ParamRole::kLoraB:
      return draw.constant(0);
    case ParamRole::kPositions:
      return draw.gauss(0.02);
    case ParamRole::kLatent:
      return init_latent(config.width, style, draw);
    case ParamRole::kToken:
      return init_token(1e-6, style, draw);
    case ParamRole::kDistillToken:
      return init_token(0.02, style, draw);
    case ParamRole::kGain:
      return draw.constant(spec.part == ParamPart::kLayerScale ? 1e-5f : 1.0f);
    case ParamRole::kMatrix:
      return init_matrix(spec, style, draw);
    case ParamRole::kBias:
      break;
  }
  if (style == InitStyle::kJax && spec.part == ParamPart::kMlp) return draw.gauss(1e-6);
  draw.constant(0);
}

VitConfig with_learned_positions(VitConfig config) {
  if (config.pos == PosKind::kSinCos2d) config.pos = PosKind::kLearned;
  return config;
}

std::vector<float> fixed_positions(const VitConfig& config) {
  const std::vector<double> table =
      SincosPositionsOp(config.grid_height(), config.grid_width(), config.width, DType::kF32).table();
  return {table.begin(), table.end()};
}

}  // namespace vitrail
