// Values of the activations, of RMSNorm and of max pooling, against torch's and by hand.
#include "ops/activate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/max_tokens.h"
#include "ops/qk_rmsnorm.h"
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
      {ActKind::kSelu,
       {-1.7564961617648047, -1.3658143533672527, -0.388890197478119, 0.0, 0.5253504936777402,
        3.677453455744182, 8.405607898843844}},
      {ActKind::kHardSigmoid, {0.0, 0.25, 0.4583333333333333, 0.5, 0.5833333333333334, 1.0, 1.0}},
      {ActKind::kHardMish, {-0.0, -0.375, -0.21875, 0.0, 0.5, 3.5, 8.0}},
      {ActKind::kIdentity, {-7, -1.5, -0.25, 0, 0.5, 3.5, 8}},
      {ActKind::kLaplace,  // these are of transformers
       {0.0, 2.55351295663786e-15, 0.00034584313679586476, 0.006094459617935588, 0.23142114841057387, 1.0,
        1.0}},
      {ActKind::kRelu2, {0.0, 0.0, 0.0, 0.0, 0.25, 12.25, 64.0}},
      {ActKind::kSqrtSoftplus,
       {0.03019050270820684, 0.4487909067514096, 0.7589067267318452, 0.8325546111576978, 0.9869533850086876,
        1.8787630021566373, 2.828486416154919}},
      {ActKind::kGelu10,
       {-8.958667141456544e-12, -0.10021080190328704, -0.10032341857926907, 0.0, 0.34573123063700656,
        3.4991857982233756, 7.999999999999995}},
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

// timm's SimpleNorm(3, eps=0.5), which does not subtract the mean that its deviation is taken from.
TEST(Rmsnorm, OfTheSimpleFormDividesByTheDeviation) {
  const Values found =
      run_reference(make_op<RmsnormOp>(0.5, true),
                    {{{{'N', 2}, {'D', 3}}, {3, 4, -1, 0, 0, 0}}, {{{'D', 3}}, {2, -1, 0.5}}});
  const Values wanted = {2.1908902300206643, -1.4605934866804429, -0.18257418583505536, 0, 0, 0};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-15);
}

TEST(Rmsnorm, OfQueriesAndKeysLeavesValuesAsTheyAre) {
  const Values found = run_reference(
      make_op<QkRmsnormOp>(0.0), {{{{'B', 1}, {'N', 1}, {'T', 3}, {'H', 1}, {'E', 2}}, {3, 4, 6, 8, 7, -9}},
                                  {{{'E', 2}}, {1, 2}},
                                  {{{'E', 2}}, {-1, 10}}});
  const double root = std::sqrt(12.5);
  const Values wanted = {3 / root, 8 / root, -3 / root, 40 / root, 7, -9};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-14);
}

TEST(Activate, IsAtMostTenWhereItIsClipped) {
  EXPECT_EQ(run_reference(make_op<ActivateOp>(ActKind::kGelu10), {{{{'D', 2}}, {9.5, 12}}}),
            (Values{9.5, 10}));
  EXPECT_EQ(run_reference(make_op<ActivateGradOp>(ActKind::kGelu10),
                          {{{{'D', 2}}, {9.5, 12}}, {{{'D', 2}}, {3, 3}}}),
            (Values{3, 0}));
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
