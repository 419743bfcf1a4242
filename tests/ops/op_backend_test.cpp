// Every op on every backend, dtype and instruction set against the reference in double.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/cpu_isa.h"
#include "backend/cuda/kernels.h"
#include "backend/ref/kernels.h"
#include "ops/fused.h"
#include "plan/tolerance.h"
#include "run_op.h"

namespace vitrail {
namespace {

struct Mode {
  DType dtype;
  bool full_vectors;
};
constexpr Mode kModes[] = {{DType::kF32, false},
                           {DType::kF16, false},
                           {DType::kBF16, false},
                           {DType::kF16, true},
                           {DType::kBF16, true}};

RunSettings reference(const Mode& mode) {
  return {.dtype = mode.dtype, .full_vectors = mode.full_vectors};
}

std::string label(const OpCase& c, const RunSettings& s) {
  return strf("%s on %s %s in %s%s with %d threads", c.name.c_str(), s.backend, s.isa, to_string(s.dtype),
              s.full_vectors ? " and f32 vectors" : "", s.threads);
}

void expect_near(const OpCase& c, const RunSettings& settings, const std::vector<Result>& found,
                 const std::vector<Result>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  const std::vector<TensorDesc> descs = input_descs(c, c.ins, settings);
  for (size_t r = 0; r < found.size(); ++r) {
    ASSERT_EQ(found[r].values.size(), wanted[r].values.size());
    double largest = 0, scale = 0;
    for (size_t i = 0; i < found[r].values.size(); ++i) {
      const double a = found[r].values[i], b = wanted[r].values[i];
      if (a == b) continue;
      largest = std::isfinite(a - b) ? std::max(largest, std::abs(a - b)) : INFINITY;
    }
    for (double value : wanted[r].values)
      if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
    const Tolerance tolerance = tolerance_of(*c.op, descs, found[r].desc.dtype);
    EXPECT_LE(largest, tolerance.relative * scale + tolerance.absolute)
        << label(c, settings) << ", result " << r;
  }
}

class OpTest : public testing::TestWithParam<OpCase> {};

TEST_P(OpTest, ReferenceInEveryDtype) {
  const OpCase& c = GetParam();
  for (const Mode& mode : kModes) {
    const RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    expect_near(c, settings, run_op(c, c.ins, inputs, settings), run_op(c, c.ins, inputs, {}));
  }
}

TEST_P(OpTest, CpuInEveryDtypeAtEveryInstructionSetAndThreadCount) {
  const OpCase& c = GetParam();
  for (const Mode& mode : kModes) {
    RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    settings.backend = "cpu";
    for (IsaLevel level : available_isa_levels()) {
      settings.isa = to_string(level);
      settings.threads = 1;
      const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
      expect_near(c, settings, found, wanted);
      for (int threads : {2, 3, 8}) {
        settings.threads = threads;
        EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << label(c, settings);
      }
    }
  }
}

TEST_P(OpTest, CudaInEveryDtypeAndReplayed) {
  if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  const OpCase& c = GetParam();
  for (const Mode& mode : kModes) {
    RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    settings.backend = "cuda";
    const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
    expect_near(c, settings, found, wanted);
    settings.runs = 3;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "replayed: " << label(c, settings);
  }
}

// Which kernel runs is known without a GPU.
TEST_P(OpTest, CudaHasAKernel) {
  const OpCase& c = GetParam();
  const DeviceInfo device{.kind = DeviceKind::kCuda, .name = "H200", .compute = 90, .processors = 132};
  for (const Mode& mode : kModes) {
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, reference(mode)), outs = c.op->infer(ins);
    const NodeView node{*c.op, ins, outs};
    const Choice choice = cuda_backend().choose(node, device);
    if (choice.kernel) {
      EXPECT_LT(choice.kernel->scratch_bytes(node, device), size_t{1} << 34);
    }
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
