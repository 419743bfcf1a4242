// Which checkpoint a run goes back to, and which it leaves to the next life.
#include <gtest/gtest.h>

#include "train/helpers/exploding_run.h"

namespace vitrail::testing {
namespace {

using Steps = std::vector<int64_t>;

// After update 7, which is saved, no update can be made: neither a rollback nor --resume goes on from there.
TEST(Rollback, ACheckpointThatNoUpdateCanBeMadeFromIsPassedOverAndRemoved) {
  const WorkFolder work;
  TrainConfig config = exploding_config(12, work / "run");
  config.train.save_every = 1;
  Ran ran;
  const Error error = train_error(ran, config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_EQ(error.kind(), ErrorKind::kNumerics) << error.what();
  EXPECT_TRUE(ran.told("rollback", "step 6 at 0.5 times"));
  EXPECT_TRUE(ran.told("rollback", "step 6 at 0.25 times"));
  EXPECT_TRUE(ran.told("given_up", "--resume goes on from step 6"));
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (Steps{4, kGood}));
  config.optim.lr = 0.003;
  const Ran mended = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(mended.outcome.finished);
  EXPECT_EQ(mended.events_of("skipped_update"), 0);
  expect_finite(work / "run");
}

// What is saved on request among skipped updates is not gone back to, and pushes nothing out.
TEST(Rollback, StopsAmongSkippedUpdatesChangeNothing) {
  const WorkFolder work;
  TrainConfig config = exploding_config(40, work / "whole");
  config.train.save_every = 1;
  Ran whole;
  const Error wanted = train_error(whole, config, work / "whole", {.resume = ResumeMode::kNewest});
  ASSERT_EQ(whole.events_of("rollback"), 2);
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const std::string folder = work / std::to_string(ranks);
    exploding_config(40, folder);
    // Several ranks agree on a stop before an update is reported, and so make one more.
    const Steps stops = ranks == 1 ? Steps{kGood + 2, kGood + 3} : Steps{kGood + 1};
    for (const int64_t stop : stops)
      train(config, folder, {.resume = ResumeMode::kNewest, .stop_after = stop, .ranks = ranks});
    const int64_t last = ranks == 1 ? kGood + 3 : kGood + 2;
    EXPECT_EQ(CheckpointStore(folder).steps(), (Steps{4, kGood, kGood + 1, last}));
    Ran ran;
    const Error error = train_error(ran, config, folder, {.resume = ResumeMode::kNewest, .ranks = ranks});
    EXPECT_EQ(error.message(), wanted.message());
    EXPECT_EQ(CheckpointStore(folder).steps(), CheckpointStore(work / "whole").steps());
    if (ranks == 1) {
      EXPECT_EQ(differing(state_of(folder), state_of(work / "whole")), std::vector<std::string>());
      EXPECT_EQ(metrics_of(folder), metrics_of(work / "whole"));
    }
  }
}

}  // namespace
}  // namespace vitrail::testing
