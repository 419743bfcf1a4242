#include "passes/reduce_products.h"

#include <gtest/gtest.h>

#include "models/vit.h"
#include "ops/fused.h"
#include "passes/fuse.h"

namespace vitrail {
namespace {

VitConfig tiny() {
  VitConfig c;
  c.image_height = c.image_width = 32;
  c.patch = 8;
  c.width = 48;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 96;
  c.classes = 7;
  return c;
}

TEST(ReduceProducts, ChangesTheFourProductsOfEveryBlockAndNoOther) {
  const Program exact = record_vit(tiny(), {}), reduced = reduce_products(exact, Arithmetic::kInt8);
  std::vector<std::string> changed;
  ASSERT_EQ(reduced.nodes.size(), exact.nodes.size());
  for (const Node& node : reduced.nodes)
    if (const auto* linear = dynamic_cast<const LinearOp*>(node.op.get()))
      if (linear->arithmetic() == Arithmetic::kInt8) changed.push_back(node.name);
  EXPECT_EQ(changed, (std::vector<std::string>{"blocks.0.attn.qkv", "blocks.0.attn.proj", "blocks.0.mlp.fc1",
                                               "blocks.0.mlp.fc2", "blocks.1.attn.qkv", "blocks.1.attn.proj",
                                               "blocks.1.mlp.fc1", "blocks.1.mlp.fc2"}));
  EXPECT_NO_THROW(reduced.validate());
}

TEST(ReduceProducts, FusionTakesTheSameNeighboursAndKeepsTheArithmetic) {
  const Program exact = fuse(record_vit(tiny(), {})),
                reduced = fuse(reduce_products(record_vit(tiny(), {}), Arithmetic::kBF16));
  ASSERT_EQ(reduced.nodes.size(), exact.nodes.size());
  int told = 0;
  for (size_t i = 0; i < exact.nodes.size(); ++i) {
    EXPECT_EQ(reduced.nodes[i].op->kind(), exact.nodes[i].op->kind());
    told += reduced.nodes[i].op->attributes().find("arithmetic=bf16") != std::string::npos;
  }
  EXPECT_EQ(told, 8);
}

}  // namespace
}  // namespace vitrail
