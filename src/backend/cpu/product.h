// A product and what may stand around it, read from an op: linear, patch_embed, or a fused node of layernorm,
// product, bias, gelu, scale and residual in that order. Used by the launches of products, whatever they
// compute in.
#pragma once

#include "backend/cpu/gemm.h"
#include "backend/kernel.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"

namespace vitrail::cpu {

// Where the parts of a product stand among a node's inputs; -1: absent.
struct Product {
  bool is_patch_embed = false;
  Arithmetic arithmetic = Arithmetic::kExact;
  const LayernormOp* norm = nullptr;
  const GeluOp* gelu = nullptr;
  int x = -1, weight = -1, gamma = -1, beta = -1, bias = -1, scale = -1, residual = -1;
  std::string misfit;  // why the node is not a product of this form
};

Product parse(const Op& op);

// A weight as a matrix [n, k]: for the patch embedding every dim but the first is contracted, for a linear
// those it shares with x.
MatmulExtents extents(const Product& p, const Shape& x, const Shape& w);

// Why a node is not such a product on f32 values, wherever its weight comes from.
std::string misfit(const NodeView& node);

Epilogue epilogue_of(const KernelArgs& args, const Product& p, int64_t n);
// Of a linear, all but the packed weight.
LinearArgs linear_args(const KernelArgs& args, const Product& p, const MatmulExtents& e);

}  // namespace vitrail::cpu
