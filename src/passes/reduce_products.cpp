#include "passes/reduce_products.h"

namespace vitrail {

Program reduce_products(Program program, Arithmetic arithmetic) {
  for (Node& node : program.nodes)
    if (node.op->kind() == "linear" && node.name.starts_with("blocks."))
      node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
