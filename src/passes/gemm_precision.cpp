// The pass that lets the GEMMs of the blocks compute in a lower precision, where they are large enough.
#include "passes/passes.h"

#include <algorithm>

namespace vitrail {

namespace {
bool is_block_gemm(const Node& node) {
  return is<LinearOp>(*node.op) && node.block >= 0 && node.part != ModelPart::kAdapter;
}
bool is_large(const Node& node, const Program& program, const LeastGemm& least) {
  const MatmulExtents e =
      linear_extents(program.values[node.ins[0]].desc.shape, program.values[node.ins[1]].desc.shape);
  return e.m >= least.rows && std::min(e.n, e.k) >= least.width;
}
}  // namespace

Program gemm_precision(Program program, Arithmetic arithmetic, const LeastGemm& least) {
  for (Node& node : program.nodes)
    if (is_block_gemm(node) && is_large(node, program, least))
      node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
