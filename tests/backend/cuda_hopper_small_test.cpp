// Which GEMMs of few rows our own kernel for compute capability 9.0 accepts, where it runs, and into which
// tiles it cuts them. No GPU is needed.
#include <gtest/gtest.h>

#include "backend/cuda/gemm_tiles.h"
#include "backend/cuda/kernels.h"
#include "backend/sketch.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"

namespace vitrail {
namespace {

using cuda::choose_tile;
using cuda::GemmTile;
using cuda::tile_cycles;

const DeviceInfo kH200 = planned_cuda_device("H200", 90, 132);

Sketch linear(int64_t rows, int64_t columns, DType type = DType::kBF16, int64_t terms = 64) {
  return {std::make_shared<LinearOp>(),
          {{type, {{'B', rows}, {'D', terms}}}, {type, {{'F', columns}, {'D', terms}}}}};
}
std::string declines(const Sketch& node) {
  for (const Kernel& kernel : *cuda_backend().kernels_of(node.view()))
    if (std::string_view(kernel.name) == "hopper_small") return kernel.declines(node.view(), kH200);
  throw Error(ErrorKind::kInternal, "not listed");
}
std::string chosen(const Sketch& node, const DeviceInfo& device = kH200) {
  return cuda_backend().choose(node.view(), device).kernel->name;
}

TEST(CudaHopperSmall, RunsUnaskedWhereRowsAreFew) {
  EXPECT_EQ(chosen(linear(1, 96)), "hopper_small");
  EXPECT_EQ(chosen(linear(197, 96)), "hopper_small");
  EXPECT_EQ(chosen(linear(394, 96)), "cublaslt");
  EXPECT_EQ(chosen(linear(1, 96, DType::kBF16, 3072)), "hopper_small");
  EXPECT_EQ(chosen(linear(197, 96, DType::kBF16, 3072)), "cublaslt") << "many terms";
  EXPECT_EQ(chosen(linear(197, 96, DType::kF32)), "cublaslt");
  DeviceInfo older = kH200;
  older.compute = 80;
  EXPECT_EQ(chosen(linear(197, 96), older), "cublaslt");
}

TEST(CudaHopperSmall, TakesNeitherPatchesNorGradients) {
  const Dim d('D', 64), f('F', 96);
  const DType half = DType::kBF16;
  EXPECT_EQ(declines({std::make_shared<PatchEmbedOp>(),
                      {{half, {{'B', 4}, {'C', 3}, {'Y', 32}, {'X', 32}}},
                       {half, {d, {'C', 3}, {'P', 8}, {'Q', 8}}}}}),
            "gathers no patches");
  EXPECT_EQ(declines({std::make_shared<LinearDxOp>(), {{half, {{'B', 9}, f}}, {half, {f, d}}}}),
            "computes no gradient");
  EXPECT_EQ(declines(linear(197, 10)), "rows of 10 16-bit elements are not whole 16 bytes");
}

// The GEMMs of ViT-B/16: qkv, proj, fc1, fc2.
constexpr int64_t kSizes[][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}};

int64_t blocks(const GemmTile& tile, int64_t m, int64_t n) {
  return (m + 63) / 64 * ((n + tile.columns - 1) / tile.columns) * tile.splits;
}

TEST(GemmTiles, KeepMostOfTheGpuBusy) {
  for (const int64_t images : {1, 2})
    for (const auto& [n, k] : kSizes) {
      const int64_t found = blocks(choose_tile(197 * images, n, k, 132), 197 * images, n);
      EXPECT_GE(found, 80) << images << " images, " << n << " x " << k;
    }
}

TEST(GemmTiles, TermsAreSharedWhereThereAreFewTilesOfManyTerms) {
  EXPECT_GT(choose_tile(1, 768, 3072, 132).splits, 1);
  EXPECT_GT(choose_tile(197, 768, 3072, 132).splits, 1);
  EXPECT_EQ(choose_tile(1, 768, 768, 132).splits, 1);
  EXPECT_EQ(choose_tile(394, 3072, 768, 132).splits, 1);
  EXPECT_EQ(choose_tile(197, 3072, 64, 132).splits, 1) << "one step cannot be shared";
}

TEST(GemmTiles, WiderTilesForMoreColumns) {
  EXPECT_EQ(choose_tile(197, 768, 768, 132).columns, 32);
  EXPECT_EQ(choose_tile(197, 3072, 768, 132).columns, 96);
}

TEST(GemmTiles, MoreWorkTakesLonger) {
  const GemmTile tile{96, 1};
  EXPECT_LT(tile_cycles(tile, 197, 2304, 768, 132), tile_cycles(tile, 197, 2304, 3072, 132));
  EXPECT_LT(tile_cycles(tile, 197, 2304, 768, 132), tile_cycles(tile, 1576, 2304, 768, 132));
  EXPECT_LT(tile_cycles(tile, 1576, 2304, 768, 132), tile_cycles(tile, 1576, 2304, 768, 60));
}

}  // namespace
}  // namespace vitrail
