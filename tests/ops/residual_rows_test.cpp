// The one pass over rows behind an exchange, against its members one after another.
#include "ops/residual_rows.h"

#include <gtest/gtest.h>

#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/layernorm.h"
#include "ops/scale.h"
#include "run_op.h"
#include "tensor/layout.h"

namespace vitrail {
namespace {

constexpr double kEps = 1e-6;
const Shape kRowOf50 = {{'D', 50}}, kThreeCounters = {{'Z', kCounterCount}};

// Of the 32 that there are.
ResidualRowsOp::Form rows_form(int number) {
  ResidualRowsOp::Form form{(number & 1) != 0, (number & 2) != 0, (number & 4) != 0, kEps};
  if ((number & 8) != 0) form.elements.emplace(0.3, DropUnit::kElement, uint64_t{7});
  if ((number & 16) != 0) form.images.emplace(0.4, DropUnit::kSample, uint64_t{8});
  return form;
}

OpCase rows_case(const ResidualRowsOp::Form& form, const Shape& x) {
  OpCase c{"residual_rows", make_op<ResidualRowsOp>(form), {x}, {}};
  if (form.bias) c.ins.push_back(kRowOf50);
  if (form.scale) c.ins.push_back(kRowOf50);
  c.ins.push_back(x);
  if (form.norm) c.ins.insert(c.ins.end(), {kRowOf50, kRowOf50});
  c.roles.assign(c.ins.size(), Role::kPlain);
  if (form.elements || form.images) {
    c.ins.push_back(kThreeCounters);
    c.roles.push_back(Role::kCounters);
  }
  c.is_parameter.assign(c.ins.size(), false);
  return c;
}

// The members of a pass, each a program of its own.
class RowMembers {
 public:
  RowMembers(const OpCase& c, const std::vector<Values>& inputs, const RunSettings& settings)
      : x_(c.ins[0]), inputs_(inputs), settings_(settings) {}

  void vector(OpPtr op) { run({"vector", std::move(op), {x_, kRowOf50}, {}}, {next()}); }
  void drop(const DropoutOp& op) {
    run({"dropout", make_op<DropoutOp>(op), {x_, kThreeCounters}, {}, {Role::kPlain, Role::kCounters}},
        {inputs_.back()});
  }
  void add() { run({"add", make_op<AddOp>(), {x_, x_}, {}}, {next()}); }
  void norm() { run({"norm", make_op<LayernormOp>(kEps), {x_, kRowOf50, kRowOf50}, {}}, {next(), next()}); }

  Values flowing() const { return flowing_; }

 private:
  Values next() { return inputs_[at_++]; }
  void run(OpCase c, std::vector<Values> others) {
    others.insert(others.begin(), flowing_);
    c.is_parameter.assign(others.size(), false);
    flowing_ = run_op(c, c.ins, others, settings_)[0].values;
  }

  Shape x_;
  const std::vector<Values>& inputs_;
  const RunSettings& settings_;
  size_t at_ = 1;
  Values flowing_ = inputs_[0];
};

void expect_bits_of_members(const ResidualRowsOp::Form& form, const Shape& x, const RunSettings& settings) {
  const OpCase c = rows_case(form, x);
  const std::vector<Values> inputs = make_inputs(c, settings);
  const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
  RowMembers members(c, inputs, settings);
  if (form.bias) members.vector(make_op<BiasOp>());
  if (form.elements) members.drop(*form.elements);
  if (form.scale) members.vector(make_op<ScaleOp>());
  if (form.images) members.drop(*form.images);
  members.add();
  EXPECT_EQ(found[0].values, members.flowing());
  if (!form.norm) return;
  members.norm();
  EXPECT_EQ(found[1].values, members.flowing());
}

// Rows of three images, more than are taken at a time, also where they are a part of all images and tokens.
TEST(ResidualRows, HasTheBitsOfItsMembers) {
  const Shape whole = {{'B', 3}, {'N', 33}, {'D', 50}};
  const Shape part = {part_of({'B', 9}, {0, 2, 5, 9}, 1), part_of({'N', 40}, {0, 5, 38, 40}, 1), {'D', 50}};
  for (const RunSettings& settings :
       {RunSettings{}, RunSettings{.backend = "cpu", .dtype = DType::kF32, .threads = 3}})
    for (const Shape& x : {whole, part})
      for (int number = 0; number < 32; ++number) {
        const ResidualRowsOp::Form form = rows_form(number);
        SCOPED_TRACE(ResidualRowsOp(form).attributes() + " on " + settings.backend + " " + to_string(x));
        expect_bits_of_members(form, x, settings);
      }
}

TEST(ResidualRows, SaysWhatItDropsAndCountsIt) {
  const OpCase all = rows_case(rows_form(31), {{'B', 3}, {'D', 50}}),
               still = rows_case(rows_form(7), {{'B', 3}, {'D', 50}});
  EXPECT_EQ(all.op->attributes(), "bias dropout p=0.3 scale dropout p=0.4 samples norm eps=1e-06");
  const RunSettings in_f32{.dtype = DType::kF32};
  std::vector<TensorDesc> ins = input_descs(all, all.ins, in_f32);
  const std::vector<TensorDesc> fewer = input_descs(still, still.ins, in_f32);
  EXPECT_EQ(all.op->flops(ins, all.op->infer(ins)),
            still.op->flops(fewer, still.op->infer(fewer)) + 2.0 * 150);
  EXPECT_EQ(all.op->reduction_length(ins), 50) << "of the norm, whatever comes last";
  ins.back().dtype = DType::kF32;
  EXPECT_THROW(all.op->infer(ins), Error) << "counters are integers";
  ins.pop_back();
  EXPECT_THROW(all.op->infer(ins), Error);
}

}  // namespace
}  // namespace vitrail
