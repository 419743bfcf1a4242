// The pass that lets the GEMMs of the blocks compute in a lower precision.
#include "passes/passes.h"

namespace vitrail {

namespace {
bool is_block_gemm(const Node& node) {
  return is<LinearOp>(*node.op) && node.block >= 0 && node.part != ModelPart::kAdapter;
}
}  // namespace

Program gemm_precision(Program program, Arithmetic arithmetic) {
  for (Node& node : program.nodes)
    if (is_block_gemm(node)) node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
