#include "backend/gemm_node.h"

#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/patch_embed.h"
#include "ops/scale.h"

namespace vitrail {

namespace {

// The input that a two-input member reads besides the value that flows through the fused node.
int other_source(const FusedOp::Member& member) {
  return member.sources[member.sources[0].is_input() ? 0 : 1].input();
}

void take_member(GemmNode& p, const FusedOp::Member& member) {
  const Op& op = *member.op;
  const bool started = p.weight >= 0;
  if (is<LayernormOp>(op) && !started && !p.norm) {
    p.norm = static_cast<const LayernormOp&>(op);
    p.x = member.sources[0].input();
    p.gamma = member.sources[1].input();
    p.beta = member.sources[2].input();
  } else if (is<LinearOp, PatchEmbedOp>(op) && !started) {
    p.is_patch_embed = is<PatchEmbedOp>(op);
    p.arithmetic = arithmetic_of(op);
    if (member.sources[0].is_input()) p.x = member.sources[0].input();
    p.weight = member.sources[1].input();
  } else if (is<BiasOp>(op) && started && p.bias < 0 && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.bias = other_source(member);
  } else if (is<GeluOp>(op) && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.gelu = static_cast<const GeluOp&>(op);
  } else if (is<GeluSlopeOp>(op) && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.gelu_slope = static_cast<const GeluSlopeOp&>(op);
  } else if (is<ScaleOp>(op) && started && p.scale < 0 && p.residual < 0) {
    p.scale = other_source(member);
  } else if (is<AddOp>(op) && started && p.residual < 0) {
    p.residual = other_source(member);
  } else if (is<AttentionOp>(op) && started && !p.gelu && p.scale < 0 && p.residual < 0) {
    p.attention = static_cast<const AttentionOp&>(op);
    p.unsupported = "an attention follows the GEMM";
  } else {
    p.unsupported = "no place for " + std::string(op.kind()) + " around a GEMM";
  }
}

}  // namespace

GemmNode parse_gemm(const Op& op) {
  GemmNode p;
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    for (const FusedOp::Member& member : fused->members())
      if (p.unsupported.empty()) take_member(p, member);
    if (p.unsupported.empty() && p.weight < 0) p.unsupported = "no GEMM in it";
  } else {
    p.x = 0;
    p.weight = 1;
    p.is_patch_embed = is<PatchEmbedOp>(op);
    p.arithmetic = arithmetic_of(op);
  }
  return p;
}

MatmulExtents gemm_extents(const GemmNode& p, const Shape& x, const Shape& w) {
  if (!p.is_patch_embed) return linear_extents(x, w);
  const int64_t n = w.local('D'), k = w.elems() / n;
  return {x.elems() / k, n, k};
}

std::string gemm_unsupported(const NodeView& node) {
  const GemmNode p = parse_gemm(node.op);
  if (!p.unsupported.empty()) return p.unsupported;
  if (node.outs.size() > 1) return "makes one result";
  if (p.is_patch_embed && (p.norm || p.residual >= 0))
    return "a patch embedding takes bias, gelu and scale only";
  const MatmulExtents e = gemm_extents(p, node.ins[p.x].shape, node.ins[p.weight].shape);
  for (int row : {p.bias, p.scale})
    if (row >= 0 && node.ins[row].elems() != e.n) return "a bias or scale does not cover the GEMM's outputs";
  if (p.norm && node.ins[p.gamma].elems() != e.k)
    return "the layernorm does not cover what the GEMM contracts";
  return {};
}

}  // namespace vitrail
