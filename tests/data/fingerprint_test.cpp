// Fingerprints that detect whether data has changed.
#include <gtest/gtest.h>

#include "fake_dataset.h"

namespace vitrail {
namespace {

using test::FakeDataset;

uint64_t contents_with_broken(int64_t size, std::set<int64_t> broken) {
  FakeDataset data(size, 3);
  data.broken = std::move(broken);
  return data.contents_fingerprint();
}

TEST(ContentsFingerprint, LooksAtTheFirstAndTheLastImage) {
  for (const int64_t size : {1, 2, 63, 64, 65, 100, 1000}) {
    const uint64_t whole = contents_with_broken(size, {});
    EXPECT_EQ(contents_with_broken(size, {}), whole);
    EXPECT_NE(contents_with_broken(size, {0}), whole) << size;
    EXPECT_NE(contents_with_broken(size, {size - 1}), whole) << size;
  }
}

TEST(ContentsFingerprint, LooksAt64ImagesSpreadEvenly) {
  for (const auto& [size, looked] :
       {std::pair<int64_t, int64_t>{1, 1}, {63, 63}, {64, 64}, {65, 64}, {1000, 64}}) {
    const FakeDataset data(size, 3);
    data.contents_fingerprint();
    EXPECT_EQ(data.loads, looked) << size;
  }
  const uint64_t whole = contents_with_broken(64 * 10 - 9, {});
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_NE(contents_with_broken(64 * 10 - 9, {10 * i}), whole) << i;
    EXPECT_EQ(contents_with_broken(64 * 10 - 9, {10 * i + 5}), whole) << i;
  }
}

TEST(Fingerprint, ChangesWithNamesLabelsAndClassesAlone) {
  const FakeDataset data(10, 3);
  FakeDataset broken(10, 3), relabelled(10, 3), several(10, 3);
  broken.broken = {4};
  relabelled.set_labels(9, {1});
  several.set_multi_label();
  EXPECT_EQ(FakeDataset(10, 3).fingerprint(), data.fingerprint());
  EXPECT_EQ(broken.fingerprint(), data.fingerprint()) << "what images hold does not count";
  EXPECT_NE(FakeDataset(11, 3).fingerprint(), data.fingerprint());
  EXPECT_NE(FakeDataset(10, 4).fingerprint(), data.fingerprint());
  EXPECT_NE(relabelled.fingerprint(), data.fingerprint());
  EXPECT_NE(several.fingerprint(), data.fingerprint());
}

}  // namespace
}  // namespace vitrail
