// The one pass over rows behind an exchange, against its members one after another.
#include <gtest/gtest.h>

#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/layernorm.h"
#include "ops/residual_rows.h"
#include "ops/scale.h"
#include "run_op.h"

namespace vitrail {
namespace {

constexpr double kEps = 1e-6;

Values run_one(const char* name, OpPtr op, std::vector<Shape> shapes, const std::vector<Values>& inputs,
               const RunSettings& settings) {
  OpCase c{name, std::move(op), std::move(shapes), std::vector<bool>(inputs.size(), false)};
  return run_op(c, c.ins, inputs, settings)[0].values;
}

TEST(ResidualRows, HasTheBitsOfItsMembers) {
  const Shape x = {{'B', 2}, {'N', 17}, {'D', 50}}, d = {{'D', 50}};
  for (const RunSettings& settings :
       {RunSettings{}, RunSettings{.backend = "cpu", .dtype = DType::kF32, .threads = 3}})
    for (int form = 0; form < 8; ++form) {
      const ResidualRowsOp::Form f{(form & 1) != 0, (form & 2) != 0, (form & 4) != 0, kEps};
      OpCase c{"residual_rows", make_op<ResidualRowsOp>(f), {x}, {}};
      if (f.bias) c.ins.push_back(d);
      if (f.scale) c.ins.push_back(d);
      c.ins.push_back(x);
      if (f.norm) c.ins.insert(c.ins.end(), {d, d});
      c.is_parameter.assign(c.ins.size(), false);
      const std::vector<Values> inputs = make_inputs(c, settings);
      const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
      size_t at = 1;
      Values sum = inputs[0];
      if (f.bias) sum = run_one("bias", make_op<BiasOp>(), {x, d}, {sum, inputs[at++]}, settings);
      if (f.scale) sum = run_one("scale", make_op<ScaleOp>(), {x, d}, {sum, inputs[at++]}, settings);
      sum = run_one("add", make_op<AddOp>(), {x, x}, {sum, inputs[at++]}, settings);
      EXPECT_EQ(found[0].values, sum) << form << " on " << settings.backend;
      if (!f.norm) continue;
      const Values norm = run_one("layernorm", make_op<LayernormOp>(kEps), {x, d, d},
                                  {sum, inputs[at], inputs[at + 1]}, settings);
      EXPECT_EQ(found[1].values, norm) << form << " on " << settings.backend;
    }
}

}  // namespace
}  // namespace vitrail
