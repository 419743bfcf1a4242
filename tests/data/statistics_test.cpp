// Which images the statistics of a dataset look at.
#include "data/statistics.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "data/fake_dataset.h"

namespace vitrail {
namespace {

TEST(Statistics, AFewImagesAreSpreadOverTheWhole) {
  test::FakeDataset data(9, 3);
  data.broken = {1, 2, 4, 5, 7, 8};
  ThreadPool pool(2);
  const DatasetStatistics few = statistics_of(data, 3, pool, {}), all = statistics_of(data, 0, pool, {});
  EXPECT_EQ(few.looked_at, 3);
  EXPECT_EQ(few.bad, 0) << "images 0, 3 and 6";
  EXPECT_EQ(all.looked_at, 9);
  EXPECT_EQ(all.bad, 6);
  const DatasetStatistics more = statistics_of(data, 10, pool, {});
  EXPECT_EQ(more.looked_at, 9) << "each once, however many are asked for";
  EXPECT_EQ(more.bad, 6);
  EXPECT_EQ(sample_of(data, 10, 1, "").size(), 9u);
  EXPECT_EQ(sample_of(data, 2, 1, "").size(), 2u);
}

}  // namespace
}  // namespace vitrail
