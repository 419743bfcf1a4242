// A node's GEMM on f32 values as arguments of the CPU's GEMM drivers, whatever arithmetic these compute in.
#pragma once

#include "backend/cpu/gemm/gemm.h"
#include "backend/gemm_node.h"

namespace vitrail::cpu {

// Returns why a node is not a GEMM on f32 values, wherever its weight comes from; empty: it is one.
std::string unsupported(const NodeView& node);

Epilogue epilogue_of(const KernelArgs& args, const GemmNode& p, int64_t n);
// The arguments of a linear, all but the packed weight.
LinearArgs linear_args(const KernelArgs& args, const GemmNode& p, const MatmulExtents& e);
PatchEmbedArgs patch_args(const Shape& x, const Shape& w);  // from shapes alone

}  // namespace vitrail::cpu
