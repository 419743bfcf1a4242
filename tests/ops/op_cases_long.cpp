// Values longer than what a thread of the CPU takes at a time, 16,384 elements: the second piece and the
// shorter last one lie where they belong.
#include "op_cases.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/scale.h"
#include "ops/softmax.h"
#include "ops/update/adam.h"
#include "ops/update/ema.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail {

namespace {

using enum Role;

const Dim kLongRows('B', 130), kLongTokens('N', 3), kLongWidth('D', 90);
const Shape kLong = {kLongRows, kLongTokens, kLongWidth};  // 35,100 elements: two pieces and some
const Shape kLongWeight = {{'F', 390}, {'D', 90}}, kLongRow = {kLongWidth};

std::vector<double> one_step() {
  std::vector<double> values(kControlCount);
  StepValues{.grad_factor = 0.5, .lr = 0.01, .decay = 0.7, .step = 3}.write(values.data());
  return values;
}

void add_long_update(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                     const std::vector<Role>& states) {
  std::vector<Role> roles = {kSum, kSum};
  roles.insert(roles.end(), states.begin(), states.end());
  std::vector<Shape> ins(roles.size(), kLongWeight);
  roles.push_back(kScalars), ins.push_back(control_desc().shape);
  cases.push_back(
      {name + "_long", op, ins, std::vector<bool>(ins.size(), false), roles, {{ins.size() - 1, one_step()}}});
}

void add_long_rows(std::vector<OpCase>& cases) {
  cases.push_back({"layernorm_long",
                   make_op<LayernormOp>(1e-6),
                   {kLong, kLongRow, kLongRow},
                   {false, true, true},
                   {kPlain, kVector, kVector}});
  cases.push_back({"layernorm_grad_long",
                   make_op<LayernormGradOp>(1e-6, true),
                   {kLong, kLongRow, kLong},
                   {false, true, false},
                   {kPlain, kVector, kPlain}});
  cases.push_back({"softmax_long", make_op<SoftmaxOp>(), {{{'B', 390}, {'K', 90}}}, {false}});
  cases.push_back({"bias_long", make_op<BiasOp>(), {kLong, kLongRow}, {false, true}, {kPlain, kVector}});
  cases.push_back({"scale_long", make_op<ScaleOp>(), {kLong, kLongRow}, {false, true}, {kPlain, kVector}});
}

void add_long_elements(std::vector<OpCase>& cases) {
  cases.push_back({"add_long", make_op<AddOp>(), {kLong, kLong}, {false, false}});
  cases.push_back({"average_long", make_op<AverageOp>(), {kLong, kLong}, {false, false}});
  cases.push_back({"multiply_long", make_op<MultiplyOp>(0.75), {kLong}, {false}});
  cases.push_back({"cast_long", make_op<CastOp>(DType::kBF16), {kLong}, {false}});
  cases.push_back({"gelu_long", make_op<GeluOp>(false), {kLong}, {false}});
  cases.push_back({"gelu_grad_long", make_op<GeluGradOp>(true), {kLong, kLong}, {false, false}});
  cases.push_back({"tanh_grad_long", make_op<TanhGradOp>(), {kLong, kLong}, {false, false}});
  cases.push_back({"scale_by_long",
                   make_op<ScaleByOp>(),
                   {kLong, {{'Z', 1}}},
                   {false, false},
                   {kPlain, kScalars},
                   {{1, {0.625}}}});
  cases.push_back({"dropout_long",
                   make_op<DropoutOp>(0.4, DropUnit::kElement, uint64_t{99}),
                   {kLong, {{'Z', kCounterCount}}},
                   {false, false},
                   {kPlain, kCounters},
                   {{1, {5, 6, 7}}}});
  cases.push_back(
      {"accumulate_long", make_op<AccumulateOp>(), {kLongWeight, kLongWeight}, {false, false}, {kSum, kSum}});
  cases.push_back(
      {"copy_into_long", make_op<CopyIntoOp>(), {kLongWeight, kLongWeight}, {false, true}, {kPlain, kSum}});
}

void add_long_tokens(std::vector<OpCase>& cases) {
  const Shape tokens = {{'B', 7}, {'N', 60}, {'D', 90}};
  cases.push_back({"concat_tokens_long",
                   make_op<ConcatTokensOp>(),
                   {{{'S', 2}, {'D', 90}}, tokens},
                   {true, false},
                   {kVector, kPlain}});
  cases.push_back({"drop_tokens_long", make_op<DropTokensOp>(3), {tokens}, {false}});
  cases.push_back({"mean_tokens_long", make_op<MeanTokensOp>(1), {tokens}, {false}});
  cases.push_back({"mean_tokens_grad_long",
                   make_op<MeanTokensGradOp>(1, Dim('N', 60)),
                   {{{'B', 7}, {'D', 90}}},
                   {false}});
  cases.push_back({"sum_tokens_long", make_op<SumTokensOp>(1, 40), {tokens}, {false}});
}

}  // namespace

void add_long_cases(std::vector<OpCase>& cases) {
  const UpdateScale decoupled{.lr_scale = 0.8, .weight_decay = 0.05};
  add_long_update(cases, "sgd_momentum", make_op<SgdUpdateOp>(decoupled, 0.9, false), {kPlain});
  add_long_update(cases, "adamw", make_op<AdamUpdateOp>(decoupled, Moments{}), {kPlain, kNonNegative});
  add_long_update(cases, "lion", make_op<LionUpdateOp>(decoupled, 0.9, 0.99), {kPlain});
  cases.push_back({"ema_long",
                   make_op<EmaUpdateOp>(false),
                   {kLongWeight, kLongWeight, hyper_desc().shape, control_desc().shape},
                   {false, true, false, false},
                   {kPlain, kSum, kScalars, kScalars},
                   {{2, {0.01, 0.7, 0.99, 0}}, {3, one_step()}}});
  add_long_rows(cases);
  add_long_elements(cases);
  add_long_tokens(cases);
}

}  // namespace vitrail
