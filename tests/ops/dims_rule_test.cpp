// For every op and every dim it allows to be split: run the parts, recombine, compare with the whole. A wrong
// rule would corrupt gradients silently once programs are distributed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "backend/cuda/kernels.h"
#include "ops/pool_tokens.h"
#include "plan/tolerance.h"
#include "run_op.h"

namespace vitrail {
namespace {

struct Part {
  char name;
  int64_t begin, end;
};

// Returns the elements of `whole` whose dim lies in the part, in order.
Values slice(const Values& whole, const Shape& shape, const Part& part) {
  const auto at = shape.find(part.name);
  if (!at) return whole;
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < shape.rank(); ++i) (i < *at ? outer : inner) *= i == *at ? 1 : shape[i].local;
  const int64_t extent = shape[*at].local;
  Values values;
  for (int64_t o = 0; o < outer; ++o)
    values.insert(values.end(), whole.begin() + (o * extent + part.begin) * inner,
                  whole.begin() + (o * extent + part.end) * inner);
  return values;
}

std::vector<Shape> shards(const std::vector<Shape>& shapes, const Part& part) {
  std::vector<Shape> result;
  for (const Shape& shape : shapes) {
    const auto at = shape.find(part.name);
    if (!at) {
      result.push_back(shape);
      continue;
    }
    Dim dim = shape[*at];
    dim.local = part.end - part.begin;
    dim.offset = part.begin;
    result.push_back(shape.with(part.name, dim));
  }
  return result;
}

// How far two ways of computing one result may differ.
double allowed(const OpCase& c, const Result& whole, const RunSettings& settings) {
  const int64_t length = c.op->reduction_length(input_descs(c, c.ins, settings));
  const Tolerance tolerance = tolerance_of(whole.desc.dtype, length);
  double scale = 0;
  for (double value : whole.values) scale = std::max(scale, std::abs(value));
  return tolerance.relative * scale + tolerance.absolute;
}

// Three uneven parts where there is room for them, else two, and empty ones before, between and behind.
std::vector<Part> parts_of(char name, int64_t extent) {
  const int64_t first = std::max<int64_t>(1, extent / 5),
                second = std::min(extent, std::max(first + 1, extent / 2));
  std::vector<Part> parts;
  const int64_t cuts[] = {0, 0, first, first, second, extent};
  for (size_t i = 0; i + 1 < std::size(cuts); ++i) parts.push_back({name, cuts[i], cuts[i + 1]});
  return parts;
}

void check_dim(const OpCase& c, char name, int64_t extent, const RunSettings& settings) {
  const std::vector<Values> inputs = make_inputs(c, settings);
  const std::vector<Result> whole = run_op(c, c.ins, inputs, settings);
  std::vector<Values> sums;  // of results that do not have the dim
  std::vector<double> near;
  for (const Result& result : whole) {
    sums.emplace_back(result.values.size(), 0.0);
    near.push_back(allowed(c, result, settings));
  }
  const size_t outputs = whole.size() - c.op->updates().size();
  for (const Part& part : parts_of(name, extent)) {
    std::vector<Values> parts;
    for (size_t i = 0; i < inputs.size(); ++i) parts.push_back(slice(inputs[i], c.ins[i], part));
    const std::vector<Result> found = run_op(c, shards(c.ins, part), parts, settings);
    for (size_t r = 0; r < whole.size(); ++r) {
      const Shape& shape = whole[r].desc.shape;
      ASSERT_TRUE(shape.has(name) || r < outputs) << "an input that every part holds whole is updated";
      const Values wanted = slice(whole[r].values, shape, part);
      ASSERT_EQ(found[r].values.size(), wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (!shape.has(name))
          sums[r][i] += found[r].values[i];
        else
          ASSERT_NEAR(found[r].values[i], wanted[i], near[r]) << "result " << r;
      }
    }
  }
  for (size_t r = 0; r < whole.size(); ++r)
    for (size_t i = 0; !whole[r].desc.shape.has(name) && i < sums[r].size(); ++i)
      ASSERT_NEAR(sums[r][i], whole[r].values[i], near[r]) << "sum " << r;
}

// The reference in f64, and the CPU.
const RunSettings kOnHost[] = {{}, {.backend = "cpu", .dtype = DType::kF32}};
const RunSettings kOnGpu = {.backend = "cuda", .dtype = DType::kF32};

void check_dims(const OpCase& c, const RunSettings& settings) {
  std::set<char> done;
  for (const Shape& shape : c.ins)
    for (const Dim& dim : shape) {
      const DimsRule rule = c.op->dims();
      const bool whole = rule.whole.find(dim.name) != std::string_view::npos;
      // Where a batch is cut with its pixels, recipes name rows of their own part: other inputs, made anew.
      const bool renamed = rule.with_batch && dim.name == 'B';
      if (whole || renamed || dim.extent < 2 || !done.insert(dim.name).second) continue;
      SCOPED_TRACE(strf("%s split on %c on %s", c.name.c_str(), dim.name, settings.backend));
      check_dim(c, dim.name, dim.extent, settings);
    }
}

class DimsRuleTest : public testing::TestWithParam<OpCaseRef> {};

TEST_P(DimsRuleTest, PartsRecombineToTheWhole) {
  for (const RunSettings& settings : kOnHost) check_dims(GetParam(), settings);
}

// A test of its own: the search for a GPU loads libraries that take longer than most cases.
TEST_P(DimsRuleTest, CudaPartsRecombineToTheWhole) {
  if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  if (!on_cpus_alone(GetParam())) check_dims(GetParam(), kOnGpu);
}

// Tokens that an op makes of none are a dim of its result alone.
void check_made_tokens(OpCase c, const RunSettings& settings) {
  const OpPtr made = c.op;
  const auto& op = dynamic_cast<const MadeTokensOp&>(*made);
  const std::vector<Values> inputs = make_inputs(c, settings);
  const Result whole = run_op(c, c.ins, inputs, settings)[0];
  for (const Part& part : parts_of(op.tokens().name, op.tokens().extent)) {
    Dim tokens = op.tokens();
    tokens.local = part.end - part.begin, tokens.offset = part.begin;
    c.op = op.with_tokens(tokens);
    EXPECT_EQ(run_op(c, c.ins, inputs, settings)[0].values, slice(whole.values, whole.desc.shape, part));
  }
}

TEST(DimsRule, MadeTokensAreThoseOfTheWhole) {
  std::vector<RunSettings> backends(std::begin(kOnHost), std::end(kOnHost));
  if (cuda_report().problem.empty()) backends.push_back(kOnGpu);
  int found = 0;
  for (const OpCase& c : op_cases()) {
    if (!dynamic_cast<const MadeTokensOp*>(c.op.get())) continue;
    ++found;
    for (const RunSettings& settings : backends) {
      SCOPED_TRACE(c.name + " on " + settings.backend);
      check_made_tokens(c, settings);
    }
  }
  EXPECT_GE(found, 2);
}

INSTANTIATE_TEST_SUITE_P(Ops, DimsRuleTest, testing::ValuesIn(op_case_refs()),
                         [](const auto& test) { return test.param.get().name; });

}  // namespace
}  // namespace vitrail
