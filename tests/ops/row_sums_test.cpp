// Gradients that also give the sums of their rows: the gradient is that without sums, and the sums are its
// columns'.
#include <gtest/gtest.h>

#include "ops/gelu.h"
#include "run_op.h"

namespace vitrail {
namespace {

TEST(RowSums, AreAddedToAnUnchangedGeluGradient) {
  const Shape shape = {{'B', 2}, {'N', 3}, {'F', 10}};
  for (const bool tanh_form : {false, true}) {
    const OpCase plain{"plain", std::make_shared<GeluGradOp>(tanh_form), {shape, shape}, {false, false}};
    const OpCase summed{
        "summed", std::make_shared<GeluGradOp>(tanh_form, true), {shape, shape}, {false, false}};
    const std::vector<Values> inputs = make_inputs(plain, {});
    const Values gradient = run_op(plain, plain.ins, inputs, {})[0].values;
    const std::vector<Result> both = run_op(summed, summed.ins, inputs, {});
    EXPECT_EQ(both[0].values, gradient);
    for (size_t column = 0; column < 10; ++column) {
      double sum = 0;
      for (size_t row = 0; row < 6; ++row) sum += gradient[row * 10 + column];
      EXPECT_NEAR(both[1].values[column], sum, 1e-12);
    }
  }
}

}  // namespace
}  // namespace vitrail
