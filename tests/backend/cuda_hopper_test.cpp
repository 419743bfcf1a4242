// Which GEMMs our own kernel for compute capability 9.0 accepts, and where it runs. No GPU is needed.
#include <gtest/gtest.h>

#include "backend/cuda/api/gemms.h"
#include "backend/cuda/kernels.h"
#include "backend/sketch.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/gelu_slope.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/scale.h"

namespace vitrail {
namespace {

constexpr DType kHalf = DType::kBF16, kFull = DType::kF32;
const Dim kWidth('D', 64), kHidden('F', 96);

template <typename T, typename... Args>
OpPtr make(Args... args) {
  return std::make_shared<T>(args...);
}

TensorDesc rows(int64_t count, Dim width, DType type = kHalf) {
  return {type, {{'B', count}, width}};
}

// x . w^T and what follows it.
Sketch gemm(std::vector<FusedOp::Member> after, std::vector<TensorDesc> beside, DType type = kHalf,
            int64_t count = 3000, int kept = FusedOp::kNone) {
  std::vector<FusedOp::Member> members = {{make<LinearOp>(), {0, 1}}};
  members.insert(members.end(), after.begin(), after.end());
  std::vector<TensorDesc> ins = {rows(count, kWidth, type), {type, {kHidden, kWidth}}};
  ins.insert(ins.end(), beside.begin(), beside.end());
  return {make<FusedOp>(members, kept), ins};
}

// The gradient of a linear and of the gelu before it.
Sketch slope(int64_t count, bool sums = false, bool tanh_form = false) {
  return {make<FusedOp>(std::vector<FusedOp::Member>{{make<LinearDxOp>(), {0, 1}},
                                                     {make<GeluGradOp>(tanh_form, sums), {2, made_by(0)}}}),
          {rows(count, kHidden), {kHalf, {kHidden, kWidth}}, rows(count, kWidth)}};
}

// The same by a slope that was kept.
Sketch kept_slope(int64_t count) {
  return {make<FusedOp>(std::vector<FusedOp::Member>{{make<LinearDxOp>(), {0, 1}},
                                                     {make<GeluSlopeGradOp>(true), {2, made_by(0)}}}),
          {rows(count, kHidden), {kHalf, {kHidden, kWidth}}, rows(count, kWidth)}};
}

const FusedOp::Member kBias{make<BiasOp>(), {made_by(0), 2}}, kGelu{make<GeluOp>(false), {made_by(1)}};
const DeviceInfo kH200 = planned_cuda_device("H200", 90, 132);

const Kernel& listed(const Sketch& node, std::string_view name) {
  for (const Kernel& kernel : *cuda_backend().kernels_of(node.view()))
    if (kernel.name == name) return kernel;
  throw Error(ErrorKind::kInternal, "not listed");
}
std::string chosen(const Sketch& node, const DeviceInfo& device = kH200) {
  return cuda_backend().choose(node.view(), device).kernel->name;
}

TEST(CudaHopper, TakesGemmsOf16BitsAndWhatItsEndingsDo) {
  const FusedOp::Member add{make<AddOp>(), {3, made_by(1)}};
  const FusedOp::Member scale{make<ScaleOp>(), {made_by(1), 3}}, add_scaled{make<AddOp>(), {4, made_by(2)}};
  const FusedOp::Member tanh{make<GeluOp>(true), {made_by(1)}}, add_gelu{make<AddOp>(), {3, made_by(2)}};
  const TensorDesc x = rows(3000, kHidden), row{kHalf, {kHidden}}, full_row{kFull, {kHidden}};
  const struct {
    const char* name;
    Sketch node;
    const char* reason;
  } cases[] = {
      {"plain", {make<LinearOp>(), {rows(3000, kWidth), {kHalf, {kHidden, kWidth}}}}, ""},
      {"f16", {make<LinearOp>(), {rows(3000, kWidth, DType::kF16), {DType::kF16, {kHidden, kWidth}}}}, ""},
      {"dx", {make<LinearDxOp>(), {rows(3000, kHidden), {kHalf, {kHidden, kWidth}}}}, ""},
      {"bias and gelu", gemm({kBias, kGelu}, {full_row}), ""},
      {"bias and residual", gemm({kBias, add}, {row, x}), ""},
      {"scale and residual", gemm({kBias, scale, add_scaled}, {row, full_row, x}), ""},
      {"one row", gemm({kBias, kGelu}, {row}, kHalf, 1), ""},
      {"gelu of what is kept", gemm({kBias, kGelu}, {row}, kHalf, 3000, 1), ""},
      {"gelu and its slope", gemm({kBias, {make<GeluSlopeOp>(false), {made_by(1)}}}, {row}), ""},
      {"gelu and slope of the tanh form", gemm({kBias, {make<GeluSlopeOp>(true), {made_by(1)}}}, {row}),
       "has the erf form of the gelu only"},
      {"slope of a gelu", slope(3000), ""},
      {"slope that was kept", kept_slope(3000), ""},
      {"slope and sums", slope(3000, true), ""},
      {"kept without gelu", gemm({kBias, add}, {row, x}, kHalf, 3000, 1), "keeps what a gelu reads only"},
      {"slope of the tanh form", slope(3000, true, true), "has the erf form of the gelu only"},
      {"f32",
       {make<LinearOp>(), {rows(3000, kWidth, kFull), {kFull, {kHidden, kWidth}}}},
       "multiplies 16-bit types only"},
      {"dw",
       {make<LinearDwOp>(), {rows(3000, kWidth), rows(3000, kHidden)}},
       "computes no gradient of a weight"},
      {"tanh", gemm({kBias, tanh}, {row}), "has the erf form of the gelu only"},
      {"gelu and residual", gemm({kBias, kGelu, add_gelu}, {row, x}), "ends with the gelu"},
      {"scale", gemm({kBias, scale}, {row, row}), "scales what is added to a residual only"},
      {"odd",
       {make<LinearOp>(), {rows(3000, kWidth), {kHalf, {{'F', 10}, kWidth}}}},
       "rows of 10 16-bit elements are not whole 16 bytes"},
      {"images",
       {make<PatchEmbedOp>(),
        {{kHalf, {{'B', 4}, {'C', 3}, {'Y', 32}, {'X', 32}}},
         {kHalf, {kWidth, {'C', 3}, {'P', 8}, {'Q', 8}}}}},
       "gathers no patches"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(listed(c.node, "hopper").declines(c.node.view(), kH200), c.reason) << c.name;
  }
}

TEST(CudaHopper, RunsUnaskedInPlaceOfAPassOverManyRows) {
  const TensorDesc row{kHalf, {kHidden}};
  EXPECT_EQ(chosen(gemm({kBias, kGelu}, {row}, kHalf, 3000)), "hopper");
  EXPECT_EQ(chosen(gemm({kBias, kGelu}, {row}, kHalf, 197)), "hopper_small") << "few rows";
  EXPECT_EQ(chosen(gemm({kBias}, {row}, kHalf, 3000)), "cublaslt") << "no pass";
  EXPECT_EQ(chosen(gemm({kBias, kGelu}, {{kFull, {kHidden}}}, kFull, 3000)), "cublaslt");
  DeviceInfo older = kH200;
  older.compute = 80;
  EXPECT_EQ(chosen(gemm({kBias, kGelu}, {row}, kHalf, 3000), older), "cublaslt");
}

// Nodes of two results have no other kernel, so the fuse pass makes them where this one would run.
TEST(CudaHopper, NodesOfTwoResultsAreMadeWhereItRuns) {
  const TensorDesc row{kHalf, {kHidden}};
  const auto made = [](const Sketch& node, const DeviceInfo& device = kH200) {
    return cuda_backend().choose(node.view(), device).kernel != nullptr;
  };
  EXPECT_TRUE(made(gemm({kBias, kGelu}, {row}, kHalf, 3000, 1)));
  EXPECT_FALSE(made(gemm({kBias, kGelu}, {row}, kHalf, 197, 1))) << "few rows";
  EXPECT_TRUE(made(slope(3000, true)));
  EXPECT_FALSE(made(slope(197, true))) << "few rows";
  EXPECT_FALSE(made(gemm({kBias, kGelu}, {{kFull, {kHidden}}}, kFull, 3000, 1)));
  DeviceInfo older = kH200;
  older.compute = 80;
  EXPECT_FALSE(made(slope(3000, true), older));
  EXPECT_EQ(listed(slope(3000, true), "cublaslt").declines(slope(3000, true).view(), kH200),
            "makes one result");
}

TEST(CudaHopper, SumsOfColumnsHavePlannedPartials) {
  const Sketch node = slope(3000, true);
  EXPECT_EQ(listed(node, "hopper").scratch_bytes(node.view(), kH200), size_t{25} * 4 * 64 * 4)
      << "24 tiles, and one more for a cluster of two";
}

// Without a table: 99 x 12 tiles are 9 waves of 132 blocks, in pairs 10 waves; 394 x 12 are 36 waves each
// way.
TEST(CudaHopper, ClustersAndTilesAreChosenByWaves) {
  EXPECT_EQ(cuda::hopper_waves(12608, 2304, 132, 1), 9);
  EXPECT_EQ(cuda::hopper_waves(12608, 2304, 132, 2), 10);
  EXPECT_EQ(cuda::hopper_cluster(12608, 2304, 132), 1);
  EXPECT_EQ(cuda::hopper_cluster(50432, 2304, 132), 2);
  const auto plain = [](int64_t count, int64_t outputs) {
    return Sketch(make<LinearOp>(), {rows(count, kWidth), {kHalf, {{'F', outputs}, kWidth}}});
  };
  EXPECT_EQ(chosen(plain(50432, 2304)), "hopper");
  EXPECT_EQ(chosen(plain(12608, 2304)), "hopper");
  EXPECT_EQ(chosen(plain(25216, 1024)), "cublaslt") << "six columns of tiles hang over by a ninth";
  EXPECT_EQ(chosen(plain(3152, 768)), "cublaslt") << "100 tiles leave 32 processors idle";
}

TEST(CudaHopper, ChangesNoPlansMemory) {
  const Sketch node = gemm({kBias, kGelu}, {{kHalf, {kHidden}}});
  EXPECT_EQ(listed(node, "cublaslt").scratch_bytes(node.view(), kH200),
            listed(node, "hopper").scratch_bytes(node.view(), kH200));
}

TEST(CudaHopper, ATableDecidesBothWays) {
  const TensorDesc row{kHalf, {kHidden}};
  const auto named = [](const Sketch& node, const char* kernel) {
    KernelTable table;
    table.set({*cuda_backend().tune_key(node.view(), kH200), {kernel}});
    DeviceInfo tuned = kH200;
    tuned.kernels = std::make_shared<KernelTable>(table);
    return chosen(node, tuned);
  };
  EXPECT_EQ(named(gemm({kBias}, {row}), "hopper"), "hopper");
  EXPECT_EQ(named(gemm({kBias, kGelu}, {row}, kHalf, 197), "hopper"), "hopper");
  EXPECT_EQ(named(gemm({kBias, kGelu}, {row}), "cublaslt"), "cublaslt");
  EXPECT_EQ(named(gemm({kBias, kGelu}, {row}), "cublaslt 3"), "cublaslt 3");
}

}  // namespace
}  // namespace vitrail
