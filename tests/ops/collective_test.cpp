// What a collective sends, and which of its ops a program keeps although nothing reads their results.
#include "ops/collective.h"

#include <gtest/gtest.h>

namespace vitrail {
namespace {

double sent(CollectiveKind kind, std::vector<size_t> counts, const TensorDesc& in, int ranks) {
  return CollectiveOp({.kind = kind, .axes = Axis::kData, .counts = std::move(counts)})
      .bytes_sent(std::vector{in}, ranks);
}

// 120 elements of four bytes on three ranks, each of which hands two thirds of them on.
TEST(Collective, SendsWhatTheTextbookSays) {
  const TensorDesc whole{DType::kF32, {{'D', 120}}};
  const std::vector<size_t> thirds(3, 40);
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kAllReduce, {120}, whole, 3), 2 * 2.0 / 3 * 480);
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kReduceScatter, thirds, whole, 3), 2.0 / 3 * 480);
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kAllGather, thirds, whole, 3), 2.0 / 3 * 480);
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kSend, {120}, whole, 3), 480);
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kReceive, {120}, whole, 3), 0);
}

// Its counts are those it sends, then those it receives.
TEST(Collective, AnAllToAllCountsWhatItSendsAlone) {
  const TensorDesc whole{DType::kBF16, {{'D', 120}}};
  EXPECT_DOUBLE_EQ(sent(CollectiveKind::kAllToAll, {40, 40, 40, 70, 70, 70}, whole, 3), 2.0 / 3 * 240);
}

TEST(Collective, OnlyASendIsKeptForItsOwnSake) {
  for (size_t i = 0; i < kCollectiveKinds; ++i) {
    const auto kind = static_cast<CollectiveKind>(i);
    EXPECT_EQ(CollectiveOp({.kind = kind}).keeps(), kind == CollectiveKind::kSend) << i;
  }
}

}  // namespace
}  // namespace vitrail
