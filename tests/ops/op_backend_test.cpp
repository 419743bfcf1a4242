// Every op on every backend, dtype and instruction set against the reference in double.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/cpu_isa.h"
#include "backend/ref/kernels.h"
#include "ops/fused.h"
#include "plan/tolerance.h"
#include "run_op.h"

namespace vitrail {
namespace {

void expect_near(const OpCase& c, const Values& found, const Values& wanted, DType dtype) {
  ASSERT_EQ(found.size(), wanted.size());
  std::vector<TensorDesc> descs;
  for (const Shape& shape : c.ins) descs.push_back({dtype, shape});
  double largest = 0, scale = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = std::abs(found[i] - wanted[i]);
    largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
    scale = std::max(scale, std::abs(wanted[i]));
  }
  const Tolerance tolerance = tolerance_of(dtype, reduction_length(*c.op, descs));
  EXPECT_LE(largest, tolerance.relative * scale + tolerance.absolute) << c.name << " in " << to_string(dtype);
}

class OpTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTest, ReferenceInEveryDtype) {
  const OpCase& c = GetParam();
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::vector<Values> inputs = random_inputs(c, dtype);
    const Values wanted = run_op(c, c.ins, inputs, {});
    expect_near(c, run_op(c, c.ins, inputs, {.dtype = dtype}), wanted, dtype);
  }
}

TEST_P(OpTest, CpuAtEveryInstructionSetAndThreadCount) {
  const OpCase& c = GetParam();
  const std::vector<Values> inputs = random_inputs(c, DType::kF32);
  const Values wanted = run_op(c, c.ins, inputs, {});
  for (IsaLevel level : available_isa_levels()) {
    const Values found = run_op(c, c.ins, inputs, {"cpu", to_string(level), DType::kF32, 1});
    expect_near(c, found, wanted, DType::kF32);
    for (int threads : {2, 3, 8})
      EXPECT_EQ(found, run_op(c, c.ins, inputs, {"cpu", to_string(level), DType::kF32, threads}))
          << c.name << " changes with " << threads << " threads at " << to_string(level);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, testing::ValuesIn(op_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(OpCases, CoverEveryOpOfTheReference) {
  std::set<std::string, std::less<>> covered = {"load_param"};  // what parameters of every case go through
  for (const OpCase& c : op_cases()) {
    covered.emplace(c.op->kind());
    if (const auto* fused = dynamic_cast<const FusedOp*>(c.op.get()))
      for (const FusedOp::Member& member : fused->members()) covered.emplace(member.op->kind());
  }
  covered.emplace("sincos_positions");  // no inputs: compared with big_vision's formula in the goldens
  for (const OpKernels& row : ref_backend().kernels())
    EXPECT_TRUE(covered.contains(row.op)) << "no case for " << row.op;
}

}  // namespace
}  // namespace vitrail
