#include "passes/passes.h"

namespace vitrail {

namespace {
bool is_block_product(const Node& node) {
  return is<LinearOp>(*node.op) && node.block >= 0 && node.part != ModelPart::kAdapter;
}
}  // namespace

Program reduce_products(Program program, Arithmetic arithmetic) {
  for (Node& node : program.nodes)
    if (is_block_product(node)) node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
