// The pass that lets the GEMMs of the blocks compute in a lower precision, where they have enough rows.
#include "passes/passes.h"

namespace vitrail {

namespace {
bool is_block_gemm(const Node& node) {
  return is<LinearOp>(*node.op) && node.block >= 0 && node.part != ModelPart::kAdapter;
}
int64_t rows_of(const Node& node, const Program& program) {
  return linear_extents(program.values[node.ins[0]].desc.shape, program.values[node.ins[1]].desc.shape).m;
}
}  // namespace

Program gemm_precision(Program program, Arithmetic arithmetic, int64_t least_rows) {
  for (Node& node : program.nodes)
    if (is_block_gemm(node) && rows_of(node, program) >= least_rows)
      node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
