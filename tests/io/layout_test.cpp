// Orders of elements in files, against plain nested loops.
#include "io/dialects/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace vitrail {
namespace {

using Sizes = std::vector<int64_t>;

std::vector<float> counted(int64_t elements) {
  std::vector<float> values(static_cast<size_t>(elements));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(StoredLayout, GroupsAndShapes) {
  EXPECT_EQ(layout_groups("(THE)D"), (std::vector<std::string>{"THE", "D"}));
  EXPECT_EQ(layout_groups("D(HE)"), (std::vector<std::string>{"D", "HE"}));
  EXPECT_EQ(layout_groups("1SD"), (std::vector<std::string>{"1", "S", "D"}));
  const Shape qkv = {{'T', 3}, {'H', 2}, {'E', 5}, {'D', 7}};
  EXPECT_EQ(stored_shape("(THE)D", qkv), (Sizes{30, 7}));
  EXPECT_EQ(stored_shape("(HE)D", qkv), (Sizes{10, 7}));
  EXPECT_EQ(stored_shape("DHE", qkv), (Sizes{7, 2, 5}));
  EXPECT_EQ(stored_shape("1SD", {{'S', 4}, {'D', 7}}), (Sizes{1, 4, 7}));
  EXPECT_EQ(stored_shape("KD", {{'K', 4}, {'O', 9}}), (Sizes{4, 9})) << "a head after pre_logits";
  EXPECT_EQ(stored_shape("OD", {{'O', 9}, {'D', 7}}), (Sizes{9, 7}));
}

TEST(StoredLayout, OrdersThatAreTheSame) {
  const Shape qkv = {{'T', 3}, {'H', 2}, {'E', 5}, {'D', 7}};
  EXPECT_TRUE(same_order("(THE)D", qkv));
  EXPECT_FALSE(same_order("DHE", qkv));
  EXPECT_FALSE(same_order("(HE)D", qkv)) << "a part of it";
  EXPECT_TRUE(same_order("KD", {{'K', 4}, {'O', 9}}));
  EXPECT_TRUE(same_order("1SD", {{'S', 4}, {'D', 7}}));
}

// Extents beyond a tile of 32 in both strided dims, and one part of three.
TEST(StoredLayout, PartsAreTransposedIntoTheirPlace) {
  constexpr int64_t kHeads = 3, kElements = 13, kWidth = 37;
  const Shape qkv = {{'T', 3}, {'H', kHeads}, {'E', kElements}, {'D', kWidth}};
  const int64_t part_size = kHeads * kElements * kWidth;
  const std::vector<float> stored = counted(part_size);
  for (const int part : {0, 1, 2}) {
    std::vector<float> param(static_cast<size_t>(3 * part_size), -1.0f);
    from_stored("DHE", qkv, part, stored, param);
    for (int64_t i = 0; i < 3 * part_size; ++i) {
      const int64_t d = i % kWidth, he = i / kWidth % (kHeads * kElements), t = i / part_size;
      const float expected = t == part ? stored[static_cast<size_t>(d * kHeads * kElements + he)] : -1.0f;
      ASSERT_EQ(param[static_cast<size_t>(i)], expected) << "part " << part << ", element " << i;
    }
    std::vector<float> back(stored.size());
    to_stored("DHE", qkv, part, param, back);
    EXPECT_EQ(back, stored);
  }
}

TEST(StoredLayout, KernelsOfPatches) {
  const Shape kernel = {{'D', 2}, {'C', 3}, {'P', 4}, {'Q', 5}};
  const std::vector<float> stored = counted(120);
  std::vector<float> param(120), back(120);
  from_stored("PQCD", kernel, 0, stored, param);
  size_t i = 0;
  for (int64_t d = 0; d < 2; ++d)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t p = 0; p < 4; ++p)
        for (int64_t q = 0; q < 5; ++q)
          ASSERT_EQ(param[i++], stored[static_cast<size_t>(((p * 5 + q) * 3 + c) * 2 + d)]);
  to_stored("PQCD", kernel, 0, param, back);
  EXPECT_EQ(back, stored);
  std::vector<float> same(120);
  from_stored("DCPQ", kernel, 0, stored, same);
  EXPECT_EQ(same, stored);
  std::vector<float> one(1);
  from_stored("K", {{'K', 1}}, 0, counted(1), one);
  EXPECT_EQ(one[0], 1.0f);
}

}  // namespace
}  // namespace vitrail
