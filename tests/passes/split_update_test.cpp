// The part of an update that runs on the host where optimizer state lies there.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/update/sgd.h"
#include "passes/offload.h"

namespace vitrail {
namespace {

// A rank may hold no element of a parameter, or one.
TEST(SplitUpdate, TheHostUpdatesWhatHoldsAnyElement) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const ValueId control = b.input("control", control_desc());
  for (const int64_t elems : {0, 1, 2}) {
    const std::string name = "p" + std::to_string(elems);
    const TensorDesc desc{DType::kF32, {{'D', elems}}};
    const ValueId sum = b.state("grad/" + name, desc, Category::kGradients);
    b.add_all<SgdUpdateOp>({b.parameter(name, desc), sum, control}, name, UpdateScale{}, 0.0, false);
  }
  std::vector<std::string> updated;
  for (const Node& node : split_update(b.finish()).host.nodes) updated.push_back(node.name);
  EXPECT_EQ(updated, (std::vector<std::string>{"p1", "p2"}));
}

}  // namespace
}  // namespace vitrail
