// Types of results, and which tokens a part of a value holds.
#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/pool_tokens.h"

namespace vitrail {
namespace {

TEST(OpParts, TypesOfSumsAndCasts) {
  const TensorDesc narrow{DType::kBF16, {{'D', 8}}}, wide{DType::kF32, {{'D', 8}}},
      widest{DType::kF64, {{'D', 8}}};
  EXPECT_EQ(AddOp().infer(std::vector{narrow, wide})[0].dtype, DType::kF32);
  EXPECT_EQ(AddOp().infer(std::vector{wide, narrow})[0].dtype, DType::kF32);
  EXPECT_EQ(CastOp(DType::kBF16).infer(std::vector{wide})[0].dtype, DType::kBF16);
  EXPECT_EQ(CastOp(DType::kBF16).infer(std::vector{widest})[0].dtype, DType::kF64)
      << "a reference stays exact";
  EXPECT_EQ(CastOp(DType::kF32).infer(std::vector{widest})[0].dtype, DType::kF32);
}

TEST(OpParts, TokensThatAPartHolds) {
  const struct {
    int64_t offset, local, first, end, from, count;
  } rows[] = {{0, 5, 0, 1, 0, 1}, {2, 3, 0, 1, 0, 0}, {2, 3, 1, 9, 0, 3}, {2, 3, 3, 9, 1, 2},
              {2, 3, 3, 4, 1, 1}, {2, 3, 5, 9, 3, 0}, {0, 3, 2, 3, 2, 1}};
  for (const auto& row : rows) {
    Dim part('N', 9);
    part.local = row.local, part.offset = row.offset;
    const HeldTokens held = held_tokens(part, row.first, row.end);
    EXPECT_EQ(std::pair(held.first, held.count), std::pair(row.from, row.count));
  }
}

}  // namespace
}  // namespace vitrail
