// Losses, dropout and ops that write persistent values: sums, copies, optimizer updates.
#include <cmath>

#include "op_cases.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/persistent.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/copied.h"
#include "ops/update/ema.h"
#include "ops/update/lamb_parts.h"
#include "ops/update/lion.h"
#include "ops/update/sgd.h"

namespace vitrail {

namespace {

using enum Role;

const Shape kWeight = {{'F', 60}, {'D', 90}};  // more than a chunk of square_sum

const std::vector<double> kHyper = {0.01, 0.7, 0.99, 0};

std::vector<double> control(double skip) {
  std::vector<double> values(kControlCount);
  StepValues{.skip = skip, .grad_factor = 0.5, .lr = 0.01, .decay = 0.7, .step = 3, .grad_norm = 2}.write(
      values.data());
  return values;
}

// An update of kWeight with `states`, then the control; once applied and once skipped.
void add_update(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                const std::vector<Role>& states) {
  std::vector<Role> roles = {kSum, kSum};
  roles.insert(roles.end(), states.begin(), states.end());
  roles.push_back(kScalars);
  std::vector<Shape> ins(roles.size() - 1, kWeight);
  ins.push_back(control_desc().shape);
  const std::vector<bool> none(ins.size(), false);
  for (bool skip : {false, true})
    cases.push_back(
        {name + (skip ? "_skipped" : ""), op, ins, none, roles, {{ins.size() - 1, control(skip ? 1 : 0)}}});
}

// The same with a copy of kWeight behind the control.
void add_copied_update(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                       const std::vector<Role>& states) {
  const size_t first = cases.size();
  add_update(cases, name + "_copied", std::make_shared<CopiedUpdateOp>(op), states);
  for (size_t i = first; i < cases.size(); ++i) {
    cases[i].ins.push_back(kWeight);
    cases[i].is_parameter.push_back(false);
    cases[i].roles.push_back(kPlain);
  }
}

// More classes than a GPU's block has threads, of which every third has no probability.
void add_losses_of_many_classes(std::vector<OpCase>& cases) {
  std::vector<double> targets;
  for (int64_t i = 0; i < 2 * 300; ++i)
    targets.push_back(i % 3 == 0 ? 0 : 0x1p-8 * static_cast<double>(i % 7));
  for (LossKind kind : {LossKind::kDivergence, LossKind::kSigmoidMean}) {
    const Shape many = {{'B', 2}, {'K', 300}};
    const std::string name = enum_name(kind);
    cases.push_back({"loss_of_many_" + name,
                     make_op<CrossEntropyOp>(kind),
                     {many, many},
                     {false, false},
                     {kPlain, kNonNegative},
                     {{1, targets}}});
    cases.push_back({"loss_grad_of_many_" + name,
                     make_op<CrossEntropyGradOp>(kind),
                     {many, many, {{'B', 2}}},
                     {false, false, false},
                     {kPlain, kNonNegative, kPlain},
                     {{1, targets}}});
  }
}

// A norm that is clipped, a loss scale at either limit, and overflows that count only in a row.
void add_step_limits(std::vector<OpCase>& cases) {
  const Dim one('Z', 1);
  const auto add = [&](const char* name, const LossScaleRule& rule, double sum, double scale) {
    const bool counts = rule.hysteresis > 1;
    cases.push_back({name,
                     make_op<StepControlOp>(1.0, rule),
                     {{one}, hyper_desc().shape, {one}, {{'Z', kUpdateCounters}}},
                     std::vector<bool>(counts ? 5 : 4, false),
                     std::vector<Role>(counts ? 5 : 4, kScalars),
                     {{0, {sum}}, {1, kHyper}, {2, {scale}}, {3, {1999, 5, 2, 1}}}});
    if (!counts) return;
    cases.back().ins.push_back({one});
    cases.back().given[4] = {1};
  };
  const LossScaleRule rule{.dynamic = true, .min = 8, .max = 512};
  add("step_control_clips", rule, 1e6, 64);
  add("step_control_at_the_least_scale", rule, HUGE_VAL, 8);
  add("step_control_at_the_largest_scale", rule, 9, 512);
  for (bool consecutive : {false, true})
    add(consecutive ? "step_control_counts_in_a_row" : "step_control_counts_all",
        {.dynamic = true, .window = 5000, .hysteresis = 3, .consecutive = consecutive}, 9, 64);
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& cases) {
  const Dim b('B', 5);
  cases.push_back({"loss_sum",
                   make_op<LossSumOp>(),
                   {{b}, {b}, {b}},
                   {false, false, false},
                   {kScalars, kFull, kFull},
                   {{1, {0.5, 2, HUGE_VAL, 0.25, 3}}, {2, {0.25, 0.125, 0, 1, 0.5}}}});
  const Shape logits = {b, {'K', 37}}, x = {{'B', 16}, {'N', 7}, {'D', 10}},
              counters = {{'Z', kCounterCount}};
  for (LossKind kind :
       {LossKind::kSoftmax, LossKind::kDivergence, LossKind::kSigmoidSum, LossKind::kSigmoidMean}) {
    const std::string name = enum_name(kind);
    cases.push_back({"loss_" + name,
                     make_op<CrossEntropyOp>(kind),
                     {logits, logits},
                     {false, false},
                     {kPlain, kNonNegative}});
    cases.push_back({"loss_grad_" + name,
                     make_op<CrossEntropyGradOp>(kind),
                     {logits, logits, {b}},
                     {false, false, false},
                     {kPlain, kNonNegative, kPlain}});
  }
  for (DropUnit unit : {DropUnit::kElement, DropUnit::kSample})
    for (const Shape& rows : {x, Shape{{'B', 6}, {'N', 5}, {'D', 32}}})
      cases.push_back({strf("dropout_%s%s", unit == DropUnit::kElement ? "elements" : "samples",
                            rows == x ? "" : "_of_eights"),
                       make_op<DropoutOp>(0.4, unit, uint64_t{99}),
                       {rows, counters},
                       {false, false},
                       {kPlain, kCounters},
                       {{1, {5, 6, 7}}}});
  add_losses_of_many_classes(cases);
}

void add_update_cases(std::vector<OpCase>& cases) {
  const UpdateScale decoupled{.lr_scale = 0.8, .weight_decay = 0.05},
      coupled{.weight_decay = 0.05, .decay = DecayStyle::kCoupled};
  add_update(cases, "sgd_plain", make_op<SgdUpdateOp>(coupled, 0.0, false), {});
  add_update(cases, "sgd_momentum", make_op<SgdUpdateOp>(decoupled, 0.9, false), {kPlain});
  add_update(cases, "sgd_nesterov", make_op<SgdUpdateOp>(coupled, 0.9, true), {kPlain});
  add_update(cases, "adam", make_op<AdamUpdateOp>(coupled, Moments{}), {kPlain, kNonNegative});
  add_update(cases, "adamw", make_op<AdamUpdateOp>(decoupled, Moments{}), {kPlain, kNonNegative});
  add_update(cases, "adam_not_corrected", make_op<AdamUpdateOp>(coupled, Moments{.corrected = false}),
             {kPlain, kNonNegative});
  add_update(cases, "lion", make_op<LionUpdateOp>(decoupled, 0.9, 0.99), {kPlain});
  add_copied_update(cases, "sgd", make_op<SgdUpdateOp>(coupled, 0.9, true), {kPlain});
  add_copied_update(cases, "adamw", make_op<AdamUpdateOp>(decoupled, Moments{}), {kSum, kNonNegative});
  add_copied_update(cases, "lion", make_op<LionUpdateOp>(decoupled, 0.9, 0.99), {kPlain});
  for (bool adapts : {false, true})
    add_update(cases, adapts ? "lamb" : "lamb_not_adapted",
               make_op<LambUpdateOp>(decoupled, Moments{.eps = 1e-6}, adapts), {kPlain, kNonNegative});
  // The limits are on either side of every ratio that random values give.
  for (bool below : {false, true}) {
    const LambUpdateOp limited(coupled, Moments{.eps = 1e-6, .corrected = false}, true,
                               below ? LambUpdateOp::Trust{0, 1e-3} : LambUpdateOp::Trust{1e3, 1e4});
    add_update(cases, below ? "lamb_trust_max" : "lamb_trust_min", make_op<LambUpdateOp>(limited),
               {kPlain, kNonNegative});
  }
  const size_t zeros = cases.size();  // of which no ratio can be taken, as of new scales
  add_update(cases, "lamb_of_zeros", make_op<LambUpdateOp>(decoupled, Moments{.eps = 1e-6}, true),
             {kPlain, kNonNegative});
  for (size_t i = zeros; i < cases.size(); ++i)
    cases[i].given[0] = std::vector<double>(static_cast<size_t>(kWeight.elems()), 0.0);
  for (bool adapts : {false, true}) {
    const LambUpdateOp whole(coupled, Moments{.eps = 1e-6}, adapts);
    add_update(cases, adapts ? "lamb_moments" : "lamb_moments_not_adapted", make_op<LambMomentsOp>(whole),
               {kPlain, kNonNegative});
    cases.push_back({adapts ? "lamb_move" : "lamb_move_not_adapted",
                     make_op<LambMoveOp>(whole),
                     {kWeight, kWeight, kWeight, lamb_squares_desc().shape, control_desc().shape},
                     {false, false, false, false, false},
                     {kSum, kPlain, kNonNegative, kScalars, kScalars},
                     {{3, {5, 3}}, {4, control(0)}}});
  }
  for (bool warmup : {false, true})
    cases.push_back({warmup ? "ema_warmup" : "ema",
                     make_op<EmaUpdateOp>(warmup),
                     {kWeight, kWeight, hyper_desc().shape, control_desc().shape},
                     {false, true, false, false},
                     {kPlain, kSum, kScalars, kScalars},
                     {{2, kHyper}, {3, control(0)}}});
  cases.push_back({"square_sum",
                   make_op<SquareSumOp>(),
                   {kWeight, {{'D', 7}}, kWeight},
                   {false, false, false},
                   {kSum, kSum, kSum}});
  // More tensors than one launch on a GPU takes, and more of their sums than a block has threads.
  constexpr size_t kMany = 1100;
  cases.push_back({"square_sum_of_many", make_op<SquareSumOp>(), std::vector<Shape>(kMany, Shape{{'D', 7}}),
                   std::vector<bool>(kMany, false), std::vector<Role>(kMany, kSum)});
  const Dim one('Z', 1);
  for (double sum : {9.0, HUGE_VAL})
    cases.push_back({sum < HUGE_VAL ? "step_control" : "step_control_skips",
                     make_op<StepControlOp>(1.0, LossScaleRule{.dynamic = true}),
                     {{one}, hyper_desc().shape, {one}, {{'Z', kUpdateCounters}}},
                     {false, false, false, false},
                     {kScalars, kScalars, kScalars, kScalars},
                     {{0, {sum}}, {1, kHyper}, {2, {64}}, {3, {1999, 5, 2, 1}}}});
  for (double sum : {9.0, HUGE_VAL})
    for (double passed : {0.0, 2.0})
      cases.push_back({strf("step_control_%s_after_%g", sum < HUGE_VAL ? "doubles" : "overflows", passed),
                       make_op<StepControlOp>(1.0, LossScaleRule{.dynamic = true, .hysteresis = 3}),
                       {{one}, hyper_desc().shape, {one}, {{'Z', kUpdateCounters}}, {one}},
                       {false, false, false, false, false},
                       {kScalars, kScalars, kScalars, kScalars, kScalars},
                       {{0, {sum}}, {1, kHyper}, {2, {64}}, {3, {1999, 5, 2, 1}}, {4, {passed}}}});
  add_step_limits(cases);
  cases.push_back({"accumulate", make_op<AccumulateOp>(), {kWeight, kWeight}, {false, false}, {kSum, kSum}});
  cases.push_back({"copy_into", make_op<CopyIntoOp>(), {kWeight, kWeight}, {false, true}, {kPlain, kSum}});
}

}  // namespace vitrail
