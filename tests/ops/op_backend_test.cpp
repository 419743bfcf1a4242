// Every op on every backend, dtype and instruction set against the reference in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "backend/cpu/host/levels.h"
#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/ref/kernels.h"
#include "cuda_calls.h"
#include "cuda_test.h"
#include "judge_op.h"
#include "ops/fused.h"

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

// Those in which the case's inputs have types of their own: without vectors, a mode of full ones is one of
// the others again.
std::vector<Mode> modes_of(const OpCase& c) {
  const bool has_vectors = std::find(c.roles.begin(), c.roles.end(), Role::kVector) != c.roles.end();
  std::vector<Mode> modes;
  for (const Mode& mode : kModes)
    if (has_vectors || !mode.full_vectors) modes.push_back(mode);
  return modes;
}

RunSettings reference(const Mode& mode) {
  return {.dtype = mode.dtype, .full_vectors = mode.full_vectors};
}

std::string label(const OpCase& c, const RunSettings& s) {
  return strf("%s on %s %s in %s%s with %d threads", c.name.c_str(), s.backend, s.isa, to_string(s.dtype),
              s.full_vectors ? " and f32 vectors" : "", s.threads);
}

// Compares with the reference in f64, by the roundings that the kernels which ran declare.
void expect_near(const OpCase& c, OpJudge& judge, const RunSettings& settings,
                 const std::vector<Result>& found) {
  const Verdict verdict = judge.verdict(settings, found);
  EXPECT_LE(verdict.share, kAllowedShare) << label(c, settings) << ": " << verdict.where;
  Margins::note(settings, verdict.share, c.name);
}

class OpTest : public testing::TestWithParam<OpCaseRef> {};

TEST_P(OpTest, ReferenceInEveryDtype) {
  const OpCase& c = GetParam();
  for (const Mode& mode : modes_of(c)) {
    const RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    OpJudge judge(c, inputs, wanted);
    expect_near(c, judge, settings, run_op(c, c.ins, inputs, settings));
  }
}

TEST_P(OpTest, CpuInEveryDtypeAtEveryInstructionSetAndThreadCount) {
  const OpCase& c = GetParam();
  for (const Mode& mode : modes_of(c)) {
    RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    OpJudge judge(c, inputs, wanted);
    settings.backend = "cpu";
    for (IsaLevel level : available_isa_levels()) {
      settings.isa = to_string(level);
      settings.threads = 1;
      const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
      expect_near(c, judge, settings, found);
      for (int threads : {2, 3, 8, 16}) {
        settings.threads = threads;
        EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << label(c, settings);
      }
    }
  }
}

// What a kernel needs to know of a node it reads when it is prepared, and keeps: the node may be gone then.
TEST_P(OpTest, ALaunchOnTheCpuReadsNeitherTheOpNorShapes) {
  const OpCase& c = GetParam();
  for (const Mode& mode : modes_of(c)) {
    RunSettings settings = reference(mode);
    settings.backend = "cpu";
    settings.threads = 2;
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, settings);
    settings.blind = true;
    EXPECT_TRUE(wanted == run_op(c, c.ins, inputs, settings)) << label(c, settings);
  }
}

TEST_P(OpTest, CudaInEveryDtypeAndReplayed) {
  if (const std::string problem = cuda_report().problem; !problem.empty()) GTEST_SKIP() << problem;
  const OpCase& c = GetParam();
  if (on_cpus_alone(c)) return;
  for (const Mode& mode : modes_of(c)) {
    RunSettings settings = reference(mode);
    const std::vector<Values> inputs = make_inputs(c, settings);
    const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
    OpJudge judge(c, inputs, wanted);
    settings.backend = "cuda";
    const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
    expect_near(c, judge, settings, found);
    settings.runs = 3;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "replayed: " << label(c, settings);
    settings.runs = 1, settings.blind = true;
    EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "by addresses alone: " << label(c, settings);
  }
}

// The choice of a kernel needs no GPU, and a launch is compared without one: the calls of the plugin are
// recorded instead of made, once as ever and once without the op and the shapes.
TEST_P(OpTest, CudaHasAKernelThatReadsAddressesAlone) {
  const OpCase& c = GetParam();
  const DeviceInfo device = planned_cuda_device("H200", 90, 132);
  for (const Mode& mode : modes_of(c)) {
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, reference(mode)), outs = c.op->infer(ins);
    const NodeView node{*c.op, ins, outs};
    if (on_cpus_alone(c)) {
      EXPECT_THROW(cuda_backend().choose(node, device), Error) << "refused by name, never computed wrongly";
      continue;
    }
    const Choice choice = cuda_backend().choose(node, device);
    if (choice.kernel) {
      EXPECT_LT(choice.kernel->scratch_bytes(node, device), size_t{1} << 34);
    }
    const int accepting = expect_blind_launches(c.name, node, separate_operands(node), case_again(c.name).op);
    EXPECT_TRUE(accepting > 0 || dynamic_cast<const FusedOp*>(c.op.get())) << label(c, reference(mode));
  }
}

// The case with more images: about so many rows of a GEMM.
OpCase enlarged(OpCase c, int64_t rows, int64_t wanted) {
  for (Shape& shape : c.ins)
    if (shape.has('B')) shape = shape.with('B', {'B', shape.local('B') * ((wanted + rows - 1) / rows)});
  return c;
}

// GEMMs that an own kernel accepts, with about so many rows; those that differ in rows alone appear once.
std::vector<OpCase> hopper_cases(const RunSettings& settings, int64_t rows,
                                 std::string_view kernel = "hopper") {
  const DeviceInfo device = planned_cuda_device("GPU", 90, 132);
  const auto takes = [&](const OpCase& c, const Kernel& one) {
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, settings), outs = c.op->infer(ins);
    return one.name == kernel && one.declines({*c.op, ins, outs}, device).empty();
  };
  std::vector<OpCase> cases;
  std::set<std::tuple<std::string, std::string, int64_t, int64_t>> seen;
  for (const OpCase& c : op_cases()) {
    const std::vector<TensorDesc> ins = input_descs(c, c.ins, settings), outs = c.op->infer(ins);
    const NodeView node{*c.op, ins, outs};
    const auto key = cuda_backend().tune_key(node, device);
    if (!key || key->n * key->k > 10000) continue;  // the reference is slow
    if (!seen.insert({key->op, c.op->attributes(), key->n, key->k}).second) continue;
    const OpCase large = enlarged(c, key->m, rows);
    const std::vector<Kernel>& list = *cuda_backend().kernels_of(node);
    if (std::any_of(list.begin(), list.end(), [&](const Kernel& one) { return takes(large, one); }))
      cases.push_back(large);
  }
  return cases;
}

// Runs an own kernel against the reference.
void expect_right(const OpCase& c, RunSettings settings, const char* kernel = "hopper") {
  const std::vector<Values> inputs = make_inputs(c, settings);
  const std::vector<Result> wanted = run_op(c, c.ins, inputs, {});
  OpJudge judge(c, inputs, wanted);
  settings.backend = "cuda";
  settings.kernel = kernel;
  const std::vector<Result> found = run_op(c, c.ins, inputs, settings);
  expect_near(c, judge, settings, found);
  settings.runs = 3;
  EXPECT_TRUE(found == run_op(c, c.ins, inputs, settings)) << "replayed: " << label(c, settings);
}

TEST(CudaHopper, HasCasesOfAllItTakes) {
  for (const Mode& mode : kModes) {
    std::set<std::string> names;
    for (const OpCase& c : hopper_cases(reference(mode), 2800)) names.insert(c.name);
    for (const char* name :
         {"linear_deep", "linear_dx_deep", "linear_dx_wide", "fused_linear_bias_deep",
          "fused_linear_bias_gelu_wide", "fused_linear_bias_add_wide", "fused_linear_bias_add_long",
          "fused_linear_bias_scale_add_deep", "fused_linear_bias_gelu_kept_wide",
          "fused_linear_dx_gelu_grad_deep", "fused_linear_dx_gelu_grad_sums_wide",
          "fused_linear_bias_gelu_slope_wide", "fused_linear_dx_slope_grad_sums_wide"})
      EXPECT_EQ(names.contains(name), mode.dtype != DType::kF32) << name << " in " << to_string(mode.dtype);
  }
}

TEST(CudaHopper, GivesWhatTheReferenceGives) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  for (const Mode& mode : kModes) {
    for (const OpCase& c : hopper_cases(reference(mode), 1)) expect_right(c, reference(mode));
    for (const OpCase& c : hopper_cases(reference(mode), 2800)) expect_right(c, reference(mode));
  }
}

TEST(CudaHopper, GroupsTakeTurnsOverManyTiles) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  const RunSettings settings = reference({DType::kBF16, true});
  const std::set<std::string> names = {"linear_dx_wide",
                                       "fused_linear_bias_gelu_wide",
                                       "fused_linear_bias_gelu_kept_wide",
                                       "fused_linear_dx_gelu_grad_sums_wide",
                                       "fused_linear_bias_gelu_slope_wide",
                                       "fused_linear_dx_slope_grad_sums_wide",
                                       "fused_linear_bias_add_wide",
                                       "fused_linear_bias_add_long"};
  size_t ran = 0;
  for (const OpCase& c : hopper_cases(settings, 40000))
    if (names.contains(c.name)) {
      expect_right(c, settings);
      ++ran;
    }
  EXPECT_EQ(ran, names.size());
}

TEST(CudaHopperSmall, HasCasesOfAllItTakes) {
  for (const Mode& mode : kModes) {
    std::set<std::string> names;
    for (const OpCase& c : hopper_cases(reference(mode), 1, "hopper_small")) names.insert(c.name);
    for (const char* name :
         {"linear_deep", "fused_linear_bias_deep", "fused_linear_bias_gelu_wide",
          "fused_linear_bias_add_wide", "fused_linear_bias_add_long", "fused_linear_bias_scale_add_deep"})
      EXPECT_EQ(names.contains(name), mode.dtype != DType::kF32) << name << " in " << to_string(mode.dtype);
  }
}

TEST(CudaHopperSmall, GivesWhatTheReferenceGives) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  for (const Mode& mode : kModes)
    for (const int64_t rows : {1, 100, 1500})
      for (const OpCase& c : hopper_cases(reference(mode), rows, "hopper_small"))
        expect_right(c, reference(mode), "hopper_small");
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTest, testing::ValuesIn(op_case_refs()),
                         [](const auto& test) { return test.param.get().name; });

// What a step of training or inference is made of has kernels of its own at every level: a kernel that
// declines too much would leave it to the reference, which is right and slow.
TEST(OpCases, NothingThatCostsTimeIsLeftToTheReference) {
  const std::set<std::string_view> costly = {
      "linear",       "linear_dx",   "linear_dw",   "patch_embed", "patch_embed_dw", "attention_probs",
      "sgd_update",   "adam_update", "lamb_update", "lion_update", "ema_update",     "sum_rows",
      "scale_dw",     "sum_tokens",  "square_sum",  "cast",        "bias",           "add",
      "scale",        "gelu",        "layernorm",   "softmax",     "dropout",        "mean_tokens",
      "select_token", "multiply",    "qk_norm",     "attention"};
  std::set<std::string_view> seen;
  for (const OpCase& c : op_cases())
    for (const IsaLevel level : all_isa_levels())
      for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
        if (!costly.contains(c.op->kind())) continue;
        const std::vector<TensorDesc> ins = input_descs(c, c.ins, {.dtype = dtype}), outs = c.op->infer(ins);
        const Kernel* kernel =
            cpu_backend().choose({*c.op, ins, outs}, planned_cpu_device(1, to_string(level))).kernel;
        ASSERT_TRUE(kernel) << c.name;
        EXPECT_STRNE(kernel->name, "ref")
            << c.name << " in " << to_string(dtype) << " at " << to_string(level);
        seen.insert(c.op->kind());
      }
  EXPECT_EQ(seen, costly);
}

TEST(OpCases, CoverEveryOpOfTheReference) {
  // What parameters of every case go through, and what residual_rows_test.cpp compares with its members: the
  // fuse pass makes it for the one backend that has a kernel.
  std::set<std::string, std::less<>> covered = {"load_param", "residual_rows", "attention_bias_grad",
                                                "attention_sums", "attention_sums_grad"};
  for (const OpCase& c : op_cases()) {
    covered.emplace(c.op->kind());
    if (const auto* fused = dynamic_cast<const FusedOp*>(c.op.get()))
      for (const FusedOp::Member& member : fused->members()) covered.emplace(member.op->kind());
  }
  for (const OpKernels& row : ref_backend().kernels())
    EXPECT_TRUE(covered.contains(row.op)) << "no case for " << row.op;
}

}  // namespace
}  // namespace vitrail
