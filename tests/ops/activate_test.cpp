// Values of the activations, of RMSNorm and of max pooling, against torch's and by hand.
#include "ops/activate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/max_tokens.h"
#include "ops/rmsnorm.h"
#include "run_op.h"

namespace vitrail {
namespace {

struct Input {
  Shape shape;
  Values values;
};
Values run_reference(OpPtr op, const std::vector<Input>& inputs) {
  OpCase one{"one", std::move(op), {}, std::vector<bool>(inputs.size(), false)};
  std::vector<Values> values;
  for (const Input& input : inputs) {
    one.ins.push_back(input.shape);
    values.push_back(input.values);
  }
  return run_op(one, one.ins, values, {})[0].values;
}

TEST(Activate, ValuesAreTorchs) {
  // torch.nn.functional of -7, -1.5, -0.25, 0, 0.5, 3.5, 8.
  const std::pair<ActKind, Values> rows[] = {
      {ActKind::kRelu, {0.0, 0.0, 0.0, 0.0, 0.5, 3.5, 8.0}},
      {ActKind::kRelu6, {0.0, 0.0, 0.0, 0.0, 0.5, 3.5, 6.0}},
      {ActKind::kLeakyRelu, {-0.07, -0.015, -0.0025, 0.0, 0.5, 3.5, 8.0}},
      {ActKind::kElu, {-0.9990881180344455, -0.7768698398515702, -0.22119921692859512, 0.0, 0.5, 3.5, 8.0}},
      {ActKind::kSilu,
       {-0.006377358360804518, -0.2736382857095345, -0.10945587477855048, 0.0, 0.3112296656009273,
        3.3974071923702525, 7.997317198956269}},
      {ActKind::kMish,
       {-0.006380263409573668, -0.29809974216680674, -0.129926963679141, 0.0, 0.3752452113048951,
        3.4939907151175196, 7.999998200644843}},
      {ActKind::kQuickGelu,
       {-4.687169668280189e-05, -0.10833780155292341, -0.09880035009980583, 0.0, 0.35038843660638014,
        3.4909665538652197, 7.999990233571134}},
      {ActKind::kHardSwish, {-0.0, -0.375, -0.11458333333333333, 0.0, 0.2916666666666667, 3.5, 8.0}},
      {ActKind::kTanh,
       {-0.9999983369439447, -0.9051482536448664, -0.24491866240370913, 0.0, 0.46211715726000974,
        0.9981778976111987, 0.9999997749296758}},
      {ActKind::kSigmoid,
       {0.0009110511944006454, 0.18242552380635635, 0.43782349911420193, 0.5, 0.6224593312018546,
        0.9706877692486436, 0.9996646498695336}},
  };
  const Values x = {-7, -1.5, -0.25, 0, 0.5, 3.5, 8};
  for (const auto& [act, wanted] : rows) {
    SCOPED_TRACE(enum_name(act));
    const Values found = run_reference(make_op<ActivateOp>(act), {{{{'D', 7}}, x}});
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << x[i];
  }
}

TEST(Rmsnorm, DividesByTheRootOfTheMeanSquare) {
  const Values found =
      run_reference(make_op<RmsnormOp>(2.5), {{{{'N', 2}, {'D', 2}}, {3, 4, 0, 0}}, {{{'D', 2}}, {2, -1}}});
  const double inverse = 1 / std::sqrt(12.5 + 2.5);
  const Values wanted = {6 * inverse, -4 * inverse, 0, 0};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-15);
}

const Shape kTokens = {{'B', 2}, {'N', 3}, {'D', 2}};
const Values kValues = {9, 9, 1, -5, 1, -2, 0, 7, -3, 7, -4, 6};

TEST(MaxTokens, TakesTheLargestOfEachColumn) {
  EXPECT_EQ(run_reference(make_op<MaxTokensOp>(0), {{kTokens, kValues}}), (Values{9, 9, 0, 7}));
  EXPECT_EQ(run_reference(make_op<MaxTokensOp>(1), {{kTokens, kValues}}), (Values{1, -2, -3, 7}));
}

TEST(MaxTokens, SharesTheGradientBetweenEquals) {
  const Values dx =
      run_reference(make_op<MaxTokensGradOp>(0), {{kTokens, kValues}, {{{'B', 2}, {'D', 2}}, {8, 6, 4, 2}}});
  EXPECT_EQ(dx, (Values{8, 6, 0, 0, 0, 0, 4, 1, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace vitrail
