// How GEMMs are carried out on a GPU, decided from descriptions: no device is touched.
#include <gtest/gtest.h>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/scale.h"

namespace vitrail::cuda {
namespace {

constexpr DType kHalf = DType::kBF16, kFull = DType::kF32;
const Dim kB('B', 2), kN('N', 37), kD('D', 64), kF('F', 96);
const Shape kX = {kB, kN, kD}, kWide = {kB, kN, kF};

template <typename T, typename... Args>
OpPtr make(Args... args) {
  return std::make_shared<T>(args...);
}

struct Sketch {
  OpPtr op;
  std::vector<TensorDesc> ins, outs;

  Sketch(std::vector<FusedOp::Member> members, std::vector<TensorDesc> inputs) : ins(std::move(inputs)) {
    op = members.size() == 1 ? members[0].op : std::make_shared<FusedOp>(std::move(members));
    outs = op->infer(ins);
  }
  NodeView view() const { return {*op, ins, outs}; }
};

Sketch linear_with(std::vector<FusedOp::Member> after, std::vector<TensorDesc> others, DType dtype) {
  std::vector<FusedOp::Member> members = {{make<LinearOp>(), {0, 1}}};
  members.insert(members.end(), after.begin(), after.end());
  std::vector<TensorDesc> ins = {{dtype, kX}, {dtype, {kF, kD}}};
  ins.insert(ins.end(), others.begin(), others.end());
  return {std::move(members), std::move(ins)};
}

const FusedOp::Member kBias{make<BiasOp>(), {made_by(0), 2}};

struct StepCase {
  const char* name;
  Sketch node;
  bool finished, gemm_in_scratch, casts_bias;
};

std::vector<StepCase> step_cases() {
  const FusedOp::Member erf{make<GeluOp>(false), {made_by(1)}}, tanh{make<GeluOp>(true), {made_by(1)}};
  const FusedOp::Member add{make<AddOp>(), {3, made_by(1)}}, scale{make<ScaleOp>(), {made_by(1), 3}};
  return {
      {"a GEMM alone", linear_with({}, {}, kHalf), false, false, false},
      {"a bias of the same type", linear_with({kBias}, {{kHalf, {kF}}}, kHalf), false, false, false},
      {"a wider bias", linear_with({kBias}, {{kFull, {kF}}}, kHalf), false, false, true},
      {"a stream of the same type", linear_with({kBias, add}, {{kHalf, {kF}}, {kHalf, kWide}}, kHalf), false,
       false, false},
      {"a wider stream", linear_with({kBias, add}, {{kFull, {kF}}, {kFull, kWide}}, kHalf), false, false,
       false},
      {"a narrower stream", linear_with({kBias, add}, {{kFull, {kF}}, {kHalf, kWide}}, kFull), true, true,
       false},
      {"erf gelu", linear_with({kBias, erf}, {{kFull, {kF}}}, kHalf), true, false, false},
      {"tanh gelu", linear_with({kBias, tanh}, {{kHalf, {kF}}}, kHalf), false, false, false},
      {"tanh gelu in f32", linear_with({kBias, tanh}, {{kFull, {kF}}}, kFull), true, false, false},
      {"a scale", linear_with({kBias, scale}, {{kFull, {kF}}, {kFull, {kF}}}, kHalf), true, false, false},
      {"a scale and the stream it may overwrite",
       linear_with({kBias, scale, {make<AddOp>(), {4, made_by(2)}}},
                   {{kFull, {kF}}, {kFull, {kF}}, {kHalf, kWide}}, kHalf),
       true, true, false},
  };
}

TEST(CudaGemms, StepsFollowFromTypesAndMembers) {
  for (const StepCase& c : step_cases()) {
    const GemmPlan plan = plan_gemm(c.node.view(), Multiplier::kLibrary);
    EXPECT_EQ(plan.unsupported, "") << c.name;
    EXPECT_EQ(plan.finished, c.finished) << c.name;
    EXPECT_EQ(plan.gemm_in_scratch, c.gemm_in_scratch) << c.name;
    EXPECT_EQ(plan.casts_bias, c.casts_bias) << c.name;
    const size_t gemm = c.gemm_in_scratch ? plan.gemm_at + size_of(plan.gemm_type) * 74 * 96 : 0;
    EXPECT_GE(plan.scratch_bytes, std::max(kWorkspaceBytes, gemm)) << c.name;
  }
}

struct MatrixCase {
  const char* name;
  Sketch node;
  int64_t m, n, k;
  int a, b, target;
  bool a_transposed, b_transposed;
};

TEST(CudaGemms, MatricesOfEveryPass) {
  const FusedOp::Member sum{make<AccumulateOp>(), {2, made_by(0)}};
  const Shape images = {kB, {'C', 3}, {'Y', 24}, {'X', 16}}, patches = {kD, {'C', 3}, {'P', 8}, {'Q', 8}};
  const std::vector<MatrixCase> cases = {
      {"forward", linear_with({}, {}, kHalf), 74, 96, 64, 0, 1, -1, false, true},
      {"dx",
       {{{make<LinearDxOp>(), {0, 1}}}, {{kHalf, kWide}, {kHalf, {kF, kD}}}},
       74,
       64,
       96,
       0,
       1,
       -1,
       false,
       false},
      {"dw",
       {{{make<LinearDwOp>(), {0, 1}}}, {{kHalf, kX}, {kHalf, kWide}}},
       96,
       64,
       74,
       1,
       0,
       -1,
       true,
       false},
      {"dw to its sum",
       {{{make<LinearDwOp>(), {0, 1}}, sum}, {{kHalf, kX}, {kHalf, kWide}, {kFull, {kF, kD}}}},
       96,
       64,
       74,
       1,
       0,
       2,
       true,
       false},
      {"patches",
       {{{make<PatchEmbedOp>(), {0, 1}}}, {{kHalf, images}, {kHalf, patches}}},
       12,
       64,
       192,
       0,
       1,
       -1,
       false,
       true},
      {"dw of patches to its sum",
       {{{make<PatchEmbedDwOp>(8, 8), {0, 1}}, sum},
        {{kHalf, images}, {kHalf, {kB, {'N', 6}, kD}}, {kFull, patches}}},
       64,
       192,
       12,
       1,
       0,
       2,
       true,
       false},
  };
  for (const MatrixCase& c : cases) {
    const GemmPlan plan = plan_gemm(c.node.view(), Multiplier::kTiles);
    EXPECT_EQ(plan.unsupported, "") << c.name;
    EXPECT_EQ(std::tie(plan.m, plan.n, plan.k), std::tie(c.m, c.n, c.k)) << c.name;
    EXPECT_EQ(std::tie(plan.a, plan.b, plan.target), std::tie(c.a, c.b, c.target)) << c.name;
    EXPECT_EQ(plan.a_transposed, c.a_transposed) << c.name;
    EXPECT_EQ(plan.b_transposed, c.b_transposed) << c.name;
    EXPECT_EQ(plan.images >= 0, plan.patch_rows == 8) << c.name;
  }
}

// Patches of 14 x 14 x 3 = 588 elements, as cuBLASLt takes them in 16 bits.
TEST(CudaGemms, PatchesOfOddSizesArePadded) {
  const FusedOp::Member sum{make<AccumulateOp>(), {2, made_by(0)}};
  const Shape images = {kB, {'C', 3}, {'Y', 28}, {'X', 42}}, patches = {kD, {'C', 3}, {'P', 14}, {'Q', 14}};
  const TensorDesc dy = {kHalf, {kB, {'N', 6}, kD}};
  const Sketch forward({{make<PatchEmbedOp>(), {0, 1}}}, {{kHalf, images}, {kHalf, patches}});
  const GemmPlan there = plan_gemm(forward.view(), Multiplier::kLibrary);
  EXPECT_EQ(std::tuple(there.m, there.n, there.k), std::tuple(12, 64, 592));
  EXPECT_TRUE(there.pads_weight && !there.cuts_result && !there.gemm_in_scratch);
  EXPECT_GE(there.scratch_bytes, kWorkspaceBytes + (12 + 64) * 592 * 2);

  const Sketch gradient({{make<PatchEmbedDwOp>(14, 14), {0, 1}}, sum},
                        {{kHalf, images}, dy, {kFull, patches}});
  const GemmPlan back = plan_gemm(gradient.view(), Multiplier::kLibrary);
  EXPECT_EQ(std::tuple(back.m, back.n, back.k, back.target), std::tuple(64, 592, 12, 2));
  EXPECT_TRUE(back.cuts_result && back.gemm_in_scratch && !back.pads_weight);
  EXPECT_GE(back.scratch_bytes, kWorkspaceBytes + 64 * 592 * 4 + 12 * 592 * 2);

  const Sketch full({{make<PatchEmbedOp>(), {0, 1}}}, {{kFull, images}, {kFull, patches}});
  EXPECT_EQ(plan_gemm(full.view(), Multiplier::kLibrary).k, 588) << "f32 takes any";
  EXPECT_EQ(plan_gemm(forward.view(), Multiplier::kTiles).k, 588) << "and so do the tiles";
}

// Returns which kernel runs a node; empty: none, its members run.
std::string chosen(const Sketch& node) {
  for (const OpKernels& row : gemm_kernels())
    if (row.op == row_name(*node.op))
      for (const Kernel& kernel : row.kernels)
        if (kernel.declines(node.view(), {}).empty()) return kernel.name;
  return {};
}

TEST(CudaGemms, KernelsBySizesAndTypes) {
  const Dim k('K', 10);
  const auto head = [&](DType a, DType w) {
    return Sketch({{make<LinearOp>(), {0, 1}}}, {{a, kX}, {w, {k, kD}}});
  };
  EXPECT_EQ(chosen(linear_with({}, {}, kHalf)), "cublaslt");
  EXPECT_EQ(chosen(head(kFull, kFull)), "cublaslt");
  EXPECT_EQ(chosen(head(kHalf, kHalf)), "tiled product");  // rows of 20 bytes
  EXPECT_EQ(chosen(head(kFull, kHalf)), "tiled product");
  const Shape images = {kB, {'C', 3}, {'Y', 28}, {'X', 42}}, patches = {kD, {'C', 3}, {'P', 14}, {'Q', 14}};
  EXPECT_EQ(chosen({{{make<PatchEmbedOp>(), {0, 1}}}, {{kHalf, images}, {kHalf, patches}}}), "cublaslt");
  EXPECT_EQ(chosen(head(DType::kF64, DType::kF64)), "");
  EXPECT_EQ(chosen({{{make<LinearOp>(Arithmetic::kInt8), {0, 1}}}, {{kFull, kX}, {kFull, {kF, kD}}}}), "");
  EXPECT_EQ(chosen({{{make<LayernormOp>(1e-6), {0, 1, 2}}, {make<LinearOp>(), {made_by(0), 3}}},
                    {{kHalf, kX}, {kFull, {kD}}, {kFull, {kD}}, {kHalf, {kF, kD}}}}),
            "");
  EXPECT_EQ(
      chosen({{{make<GeluOp>(true), {0}}, {make<BiasOp>(), {made_by(0), 1}}}, {{kHalf, kX}, {kHalf, {kD}}}}),
      "");
}

TEST(CudaGemms, TablesKnowThemByKindTypesAndSizes) {
  const DeviceInfo device = planned_cuda_device("GPU", 90);
  const FusedOp::Member sum{make<AccumulateOp>(), {2, made_by(0)}};
  const auto key = [&](const Sketch& node) { return cuda_backend().tune_key(node.view(), device); };
  EXPECT_EQ(key(linear_with({kBias}, {{kFull, {kF}}}, kHalf)),
            (TuneKey{"linear+bias bf16", 74, 96, 64, 0, 90}));
  EXPECT_EQ(key(linear_with({}, {}, kFull)), (TuneKey{"linear f32", 74, 96, 64, 0, 90}));
  EXPECT_EQ(key({{{make<LinearDxOp>(), {0, 1}}}, {{kHalf, kWide}, {kHalf, {kF, kD}}}}),
            (TuneKey{"linear_dx bf16", 74, 64, 96, 0, 90}));
  EXPECT_EQ(key({{{make<LinearDwOp>(), {0, 1}}, sum}, {{kHalf, kX}, {kHalf, kWide}, {kFull, {kF, kD}}}}),
            (TuneKey{"linear_dw+accumulate bf16 to f32", 96, 64, 74, 0, 90}));
  EXPECT_FALSE(key({{{make<GeluOp>(true), {0}}}, {{kHalf, kX}}}));
  EXPECT_FALSE(key({{{make<LinearOp>(), {0, 1}}}, {{kHalf, kX}, {kHalf, {{'K', 10}, kD}}}}))
      << "not cuBLASLt's";
}

TEST(CudaGemms, OtherAlgorithmsRunWhereATableNamesThem) {
  const Sketch node = linear_with({kBias}, {{kHalf, {kF}}}, kHalf);
  DeviceInfo device = planned_cuda_device("GPU", 80);  // which has no kernel of our own that comes first
  const size_t scratch =
      cuda_backend().choose(node.view(), device).kernel->scratch_bytes(node.view(), device);
  for (const char* name : {"cublaslt", "cublaslt 1", "cublaslt 15", "tiled product", "cublaslt 16"}) {
    KernelTable table;
    table.set({*cuda_backend().tune_key(node.view(), device), {name}});
    DeviceInfo tuned = device;
    tuned.kernels = std::make_shared<KernelTable>(table);
    const Choice choice = cuda_backend().choose(node.view(), tuned);
    EXPECT_STREQ(choice.kernel->name, std::string(name) == "cublaslt 16" ? "cublaslt" : name);
    if (std::string(choice.kernel->name).starts_with("cublaslt")) {
      EXPECT_EQ(choice.kernel->scratch_bytes(node.view(), tuned), scratch) << "a table changes no memory";
    }
  }
  for (const Kernel* kernel : cuda_backend().candidates(node.view(), device))
    EXPECT_FALSE(kernel->only_by_table) << kernel->name;
}

}  // namespace
}  // namespace vitrail::cuda
