// The hash by which replicas are compared: no flipped bit may pass, and equal bytes give equal hashes
// wherever they lie.
#include "train/bulk_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/rng.h"

namespace vitrail {
namespace {

std::vector<std::byte> bytes_of(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(counter_hash(count, i));
  return bytes;
}

TEST(BulkHash, EveryFlippedBitChangesIt) {
  for (const size_t count : {1, 7, 8, 9, 63, 64, 65, 200}) {
    std::vector<std::byte> bytes = bytes_of(count);
    std::set<uint64_t> seen = {bulk_hash(bytes)};
    for (size_t bit = 0; bit < 8 * count; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_TRUE(seen.insert(bulk_hash(bytes)).second) << "bit " << bit << " of " << count << " bytes";
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
  }
}

TEST(BulkHash, DependsOnTheBytesAlone) {
  const std::vector<std::byte> bytes = bytes_of(300);
  std::vector<std::byte> elsewhere(303);
  std::copy(bytes.begin(), bytes.end(), elsewhere.begin() + 3);
  EXPECT_EQ(bulk_hash(bytes), bulk_hash(std::span(elsewhere).subspan(3)));
}

TEST(BulkHash, ZerosAreCountedAndWordsHaveAPlace) {
  std::set<uint64_t> seen;
  for (size_t count = 0; count < 200; ++count) seen.insert(bulk_hash(std::vector<std::byte>(count)));
  EXPECT_EQ(seen.size(), 200u);
  std::vector<std::byte> bytes = bytes_of(256), exchanged = bytes;
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 8, exchanged.begin() + 64);
  EXPECT_NE(bulk_hash(bytes), bulk_hash(exchanged)) << "two words of one lane";
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 8, exchanged.begin() + 8);
  EXPECT_NE(bulk_hash(bytes), bulk_hash(exchanged));
}

}  // namespace
}  // namespace vitrail
