#include "passes/group_updates.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/accumulate.h"
#include "ops/many.h"
#include "ops/update_sgd.h"

namespace vitrail {
namespace {

// Two parameters and a low-precision copy of each, updated in turn as the trainer records them.
Program two_updates() {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const ValueId control = b.input("control", control_desc());
  for (const char* name : {"w", "v"}) {
    const TensorDesc desc{DType::kF32, {{'F', 3}, {'D', 4}}};
    const ValueId param = b.parameter(name, desc),
                  sum = b.state("grad/" + std::string(name), desc, Category::kGradients);
    b.add_all(std::make_shared<SgdUpdateOp>(UpdateScale{}, 0.0, false), {param, sum, control}, name);
    const ValueId copy =
        b.state(std::string(name) + "@bf16", {DType::kBF16, desc.shape}, Category::kParameters);
    b.add_all(std::make_shared<CopyIntoOp>(), {copy, param}, std::string(name) + "@bf16");
  }
  return b.finish();
}

bool every_kind(std::string_view) {
  return true;
}

TEST(GroupUpdates, DUMP) {
  std::puts(to_string(two_updates()).c_str());
  std::puts(to_string(group_updates(two_updates(), every_kind)).c_str());
}

}  // namespace
}  // namespace vitrail
