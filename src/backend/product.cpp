#include "backend/product.h"

#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/patch_embed.h"
#include "ops/scale.h"

namespace vitrail {

namespace {

// The input a two-input member reads besides the value flowing through the fused node.
int other_source(const FusedOp::Member& member) {
  return member.sources[0] >= 0 ? member.sources[0] : member.sources[1];
}

void take_member(Product& p, const FusedOp::Member& member) {
  const Op& op = *member.op;
  const bool started = p.weight >= 0;
  if (is<LayernormOp>(op) && !started && !p.norm) {
    p.norm = static_cast<const LayernormOp*>(&op);
    p.x = member.sources[0], p.gamma = member.sources[1], p.beta = member.sources[2];
  } else if (is<LinearOp, PatchEmbedOp>(op) && !started) {
    p.is_patch_embed = is<PatchEmbedOp>(op);
    p.arithmetic = arithmetic_of(op);
    if (member.sources[0] >= 0) p.x = member.sources[0];
    p.weight = member.sources[1];
  } else if (is<BiasOp>(op) && started && p.bias < 0 && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.bias = other_source(member);
  } else if (is<GeluOp>(op) && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.gelu = static_cast<const GeluOp*>(&op);
  } else if (is<ScaleOp>(op) && started && p.scale < 0 && p.residual < 0) {
    p.scale = other_source(member);
  } else if (is<AddOp>(op) && started && p.residual < 0) {
    p.residual = other_source(member);
  } else if (is<AttentionOp>(op) && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.attention = static_cast<const AttentionOp*>(&op);
    p.misfit = "an attention follows the product";
  } else {
    p.misfit = "no place for " + std::string(op.kind()) + " around a product";
  }
}

}  // namespace

Product parse_product(const Op& op) {
  Product p;
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    for (const FusedOp::Member& member : fused->members())
      if (p.misfit.empty()) take_member(p, member);
    if (p.misfit.empty() && p.weight < 0) p.misfit = "no product in it";
  } else {
    p.x = 0, p.weight = 1, p.is_patch_embed = is<PatchEmbedOp>(op);
    p.arithmetic = arithmetic_of(op);
  }
  return p;
}

MatmulExtents product_extents(const Product& p, const Shape& x, const Shape& w) {
  if (!p.is_patch_embed) return linear_extents(x, w);
  const int64_t n = w.local('D'), k = w.elems() / n;
  return {x.elems() / k, n, k};
}

std::string product_misfit(const NodeView& node) {
  const Product p = parse_product(node.op);
  if (!p.misfit.empty()) return p.misfit;
  if (p.is_patch_embed && (p.norm || p.residual >= 0))
    return "a patch embedding takes bias, gelu and scale only";
  const MatmulExtents e = product_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  for (int row : {p.bias, p.scale})
    if (row >= 0 && node.ins[row].elems() != e.n)
      return "a bias or scale does not cover the product's outputs";
  if (p.norm && node.ins[p.gamma].elems() != e.k)
    return "the layernorm does not cover what the product contracts";
  return {};
}

}  // namespace vitrail
