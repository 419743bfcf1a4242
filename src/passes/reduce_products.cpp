#include "passes/reduce_products.h"

namespace vitrail {

namespace {
bool is_block_product(const Node& node) {
  return node.op->kind() == "linear" && node.name.starts_with("blocks.") &&
         node.name.find(".lora_") == std::string::npos;
}
}  // namespace

Program reduce_products(Program program, Arithmetic arithmetic) {
  for (Node& node : program.nodes)
    if (is_block_product(node)) node.op = std::make_shared<LinearOp>(arithmetic);
  return program;
}

}  // namespace vitrail
