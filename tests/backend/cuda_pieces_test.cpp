// Which rows a product's launches take, and which products may be cut so. No GPU is needed.
#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/kernels.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/pieces.h"
#include "ops/linear.h"

namespace vitrail::cuda {
namespace {

constexpr int64_t kH200 = 132;

TEST(CudaPieces, FillTheCardWhereThatIsNearTheEqualShare) {
  const struct {
    int64_t m, n;
    int pieces;
    int64_t processors, rows;
  } cases[] = {
      {50432, 3072, 1, kH200, 50432},  // one is the whole
      {50432, 3072, 2, kH200, 25344},  // 198 x 12 tiles: 18 waves
      {50432, 3072, 3, kH200, 16896},  // 12 waves
      {50432, 3072, 4, kH200, 12672},  // 9
      {50432, 2304, 2, kH200, 28160},  // 220 x 9: 15
      {50432, 2304, 4, kH200, 12672},  // 9 would be a third more rows
      {50432, 768, 3, kH200, 16896},   // 132 x 3: 3
      {25216, 4096, 2, kH200, 12672},
      {25216, 4096, 3, kH200, 8448},  // 99 x 16, 66 x 16
      {25216, 4096, 4, kH200, 6400},  // 50 x 16: no whole waves near
      {50432, 3072, 3, 108, 17280},   // 135 x 12 on an A100: 15
      {4099, 1000, 2, kH200, 2176},   // 17 x 4
      {3000, 96, 3, kH200, 1024},
      {200, 96, 3, kH200, 128},  // whole tiles of rows
      {100, 96, 3, kH200, 100},
      {128, 96, 2, kH200, 128},  // too few to cut
      {1, 1, 4, kH200, 1},
  };
  for (const auto& c : cases)
    EXPECT_EQ(rows_of_piece(c.m, c.n, c.pieces, c.processors), c.rows)
        << c.m << " x " << c.n << " in " << c.pieces;
}

TEST(CudaPieces, AreAsManyAsAskedForWhereTheyMayRun) {
  for (const int64_t processors : {1, 58, 108, 132, 170})
    for (const int64_t n : {1, 96, 768, 1000, 2304, 3072, 4096})
      for (int pieces = 2; pieces <= kMostPieces; ++pieces)
        for (int64_t m = 1; m < 60000; m += m < 5000 ? 61 : 1009) {
          const int64_t rows = rows_of_piece(m, n, pieces, processors);
          ASSERT_TRUE(rows == m || rows % 128 == 0) << m;
          ASSERT_GE(rows * pieces, m);
          ASSERT_TRUE(rows < kLeastPieceRows || rows * (pieces - 1) < m)
              << m << " x " << n << " in " << pieces;
        }
}

// Kernels that take the node and run in pieces.
std::set<std::string> cut(const Op& op, const std::vector<TensorDesc>& ins) {
  const std::vector<TensorDesc> outs = op.infer(ins);
  const DeviceInfo device{.kind = DeviceKind::kCuda, .compute = 90, .processors = kH200};
  std::set<std::string> names;
  for (const Kernel& kernel : *cuda_backend().kernels_of({op, ins, outs})) {
    const std::string name = kernel.name;
    if (name.find(" in ") == std::string::npos) continue;
    EXPECT_TRUE(kernel.on_request) << name;
    if (kernel.declines({op, ins, outs}, device).empty()) names.insert(name);
  }
  return names;
}

TEST(CudaPieces, AreForProductsOfManyRows) {
  const Dim d('D', 64), f('F', 96);
  const auto x = [](int64_t rows, Dim width) { return TensorDesc{DType::kBF16, {{'B', rows}, width}}; };
  const TensorDesc w{DType::kBF16, {f, d}};
  EXPECT_EQ(cut(LinearOp(), {x(50432, d), w}).size(), 16u * 3);
  EXPECT_TRUE(cut(LinearOp(), {x(50432, d), w}).contains("cublaslt 7 in 3"));
  EXPECT_TRUE(cut(LinearDxOp(), {x(50432, f), w}).contains("cublaslt in 4"));
  const std::set<std::string> few = cut(LinearOp(), {x(2000, d), w});
  EXPECT_TRUE(few.contains("cublaslt in 2"));
  EXPECT_FALSE(few.contains("cublaslt in 3"));
  EXPECT_TRUE(cut(LinearOp(), {x(197, d), w}).empty());
  EXPECT_TRUE(cut(LinearDwOp(), {x(50432, d), x(50432, {'F', 4096})}).empty());
}

}  // namespace
}  // namespace vitrail::cuda
