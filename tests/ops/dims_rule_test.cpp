// For every op and every dim it allows to be split: run the parts, recombine, compare with the whole. A wrong
// rule would corrupt gradients silently once programs are distributed.
#include <gtest/gtest.h>

#include <set>

#include "run_op.h"

namespace vitrail {
namespace {

// Elements of `whole` whose dim `name` lies in [begin, end), in order.
Values slice(const Values& whole, const Shape& shape, char name, int64_t begin, int64_t end) {
  const auto at = shape.find(name);
  if (!at) return whole;
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < shape.rank(); ++i) (i < *at ? outer : inner) *= i == *at ? 1 : shape[i].local;
  const int64_t extent = shape[*at].local;
  Values part;
  for (int64_t o = 0; o < outer; ++o)
    part.insert(part.end(), whole.begin() + (o * extent + begin) * inner,
                whole.begin() + (o * extent + end) * inner);
  return part;
}

std::vector<Shape> sliced_shapes(const std::vector<Shape>& shapes, char name, int64_t extent) {
  std::vector<Shape> result;
  for (const Shape& shape : shapes)
    result.push_back(shape.has(name) ? shape.with(name, Dim(name, extent)) : shape);
  return result;
}

void check_dim(const OpCase& c, char name, int64_t extent) {
  const std::vector<Values> inputs = random_inputs(c, DType::kF64);
  const Shape out_shape = output_shape(c, c.ins, DType::kF64);
  const Values whole = run_op(c, c.ins, inputs, {});
  const bool partial = !out_shape.has(name);
  Values sum(whole.size(), 0.0);
  const int64_t cut = extent / 2;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, cut}, {cut, extent}}) {
    std::vector<Values> parts;
    for (size_t i = 0; i < inputs.size(); ++i) parts.push_back(slice(inputs[i], c.ins[i], name, begin, end));
    const Values found = run_op(c, sliced_shapes(c.ins, name, end - begin), parts, {});
    if (partial) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += found[i];
    } else {
      const Values wanted = slice(whole, out_shape, name, begin, end);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-12) << c.name << " split on " << name;
    }
  }
  for (size_t i = 0; partial && i < sum.size(); ++i)
    ASSERT_NEAR(sum[i], whole[i], 1e-11) << c.name << " summed over " << name;
}

class DimsRuleTest : public testing::TestWithParam<OpCase> {};

TEST_P(DimsRuleTest, PartsRecombineToTheWhole) {
  const OpCase& c = GetParam();
  std::set<char> done;
  for (const Shape& shape : c.ins)
    for (const Dim& dim : shape) {
      const bool whole = c.op->dims().whole.find(dim.name) != std::string_view::npos;
      if (whole || dim.extent < 2 || !done.insert(dim.name).second) continue;
      check_dim(c, dim.name, dim.extent);
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, DimsRuleTest, testing::ValuesIn(op_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace vitrail
