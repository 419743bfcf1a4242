// Records the norms of a config's kind. It knows no names of parameters and no place in the model.
#pragma once

#include "graph/builder.h"
#include "models/vit_config.h"
#include "ops/layernorm.h"
#include "ops/qk_norm.h"
#include "ops/qk_rmsnorm.h"
#include "ops/rmsnorm.h"

namespace vitrail {

// The names of the parameters of norms called so, in the order in which their nodes take them.
inline std::vector<std::string> norm_parameters(NormKind kind, const std::vector<std::string>& norms) {
  std::vector<std::string> names;
  for (const std::string& norm : norms) {
    names.push_back(norm + ".weight");
    if (kind == NormKind::kLayer) names.push_back(norm + ".bias");
  }
  return names;
}

// `ins` are x, the weight and, of a layernorm, the bias.
inline ValueId add_norm(Builder& b, NormKind kind, double eps, const std::vector<ValueId>& ins,
                        const NodeName& name) {
  if (kind == NormKind::kLayer) return b.add<LayernormOp>(ins, name, eps);
  return b.add<RmsnormOp>(ins, name, eps, kind == NormKind::kSimple);
}

// timm gives the norm of the patches no epsilon of the model's own.
inline constexpr double kEmbedNormEps = 1e-6;

// `ins` are packed q, k and v, and the weights, each with its bias, of q and k.
inline ValueId add_qk_norm(Builder& b, const VitConfig& c, const std::vector<ValueId>& ins,
                           const NodeName& name) {
  if (c.norm == NormKind::kLayer) return b.add<QkNormOp>(ins, name, c.norm_eps);
  return b.add<QkRmsnormOp>(ins, name, c.norm_eps, c.norm == NormKind::kSimple);
}

}  // namespace vitrail
