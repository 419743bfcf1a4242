// Normal draws against the formulas in the C library's words.
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace vitrail {
namespace {

constexpr uint64_t kKey = 77;

double by_formula(uint64_t key, uint64_t index) {
  return std::sqrt(-2 * std::log(uniform01(key, 2 * index))) *
         std::cos(2 * M_PI * uniform01(key, 2 * index + 1));
}

TEST(Normal, IsBoxAndMullers) {
  std::vector<double> drawn(100'000);
  draw_normals(kKey, 0, drawn);
  for (size_t i = 0; i < drawn.size(); ++i) ASSERT_NEAR(drawn[i], by_formula(kKey, i), 2e-12) << i;
}

TEST(Normal, TheCutOneIsTheFirstAttemptInside) {
  std::vector<double> drawn(20'000);
  draw_cut_normals(kKey, 0, drawn);
  size_t again = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    uint64_t attempt = 0;
    while (std::abs(by_formula(counter_hash(kKey, attempt), i)) > 2) ++attempt;
    again += attempt > 0;
    ASSERT_NEAR(drawn[i], by_formula(counter_hash(kKey, attempt), i), 2e-12) << i;
  }
  EXPECT_NEAR(static_cast<double>(again), 0.0455 * 20'000, 150);  // outside two deviations
}

TEST(Normal, AnyPieceOfAStreamIsTheSame) {
  std::vector<double> whole(1000), piece(300);
  draw_normals(kKey, 0, whole);
  draw_normals(kKey, 333, piece);
  for (size_t i = 0; i < piece.size(); ++i) ASSERT_EQ(piece[i], whole[333 + i]);
  draw_cut_normals(kKey, 0, whole);
  draw_cut_normals(kKey, 333, piece);
  for (size_t i = 0; i < piece.size(); ++i) ASSERT_EQ(piece[i], whole[333 + i]);
}

TEST(Normal, UniformsLieInsideTheInterval) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    ASSERT_GT(uniform01(kKey, i), 0);
    ASSERT_LT(uniform01(kKey, i), 1);
  }
}

}  // namespace
}  // namespace vitrail
