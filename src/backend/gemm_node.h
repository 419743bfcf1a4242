// A GEMM and its neighbours, parsed from an op: linear, patch_embed, or a fused node of layernorm, GEMM,
// bias, gelu, scale and residual in that order, or of layernorm, GEMM, bias and attention. Shared by the
// backends' GEMM launches; knows no device.
#pragma once

#include <optional>

#include "backend/kernel.h"
#include "ops/attention.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/layernorm.h"
#include "ops/linear.h"

namespace vitrail {

// The places of a GEMM's operands among a node's inputs; -1: absent.
struct GemmNode {
  bool is_patch_embed = false;
  Arithmetic arithmetic = Arithmetic::kExact;
  // Copies, since a prepared kernel outlives its node.
  std::optional<LayernormOp> norm;
  std::optional<GeluOp> gelu;
  std::optional<GeluSlopeOp> gelu_slope;  // ends the node, which then makes two results
  std::optional<AttentionOp> attention;   // ends the node, which is then unsupported as a plain GEMM
  int x = -1, weight = -1, gamma = -1, beta = -1, bias = -1, scale = -1, residual = -1;
  std::string unsupported;  // why the node is not a GEMM of this form
};

GemmNode parse_gemm(const Op& op);

// Returns which gelu an op means, as a backend names them for its kernels.
template <typename Activation>
constexpr Activation activation_of(bool tanh_form) {
  return tanh_form ? Activation::kGeluTanh : Activation::kGeluErf;
}

// A weight as a matrix [n, k]: in a patch embedding every dim but the first is contracted, in a linear the
// dims it shares with x.
MatmulExtents gemm_extents(const GemmNode& p, const Shape& x, const Shape& w);

// Returns why a node is no such GEMM, whatever its types and its weight's origin; empty: it is one.
std::string gemm_unsupported(const NodeView& node);

}  // namespace vitrail
