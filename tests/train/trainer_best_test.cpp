// What best/ holds when it could not be written, when a result is none, and when it is a link.
#include <gtest/gtest.h>

#include <fstream>

#include "faults/small_disk.h"
#include "io/model_files.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

// A rename would put the next best model in the place of the link, on whatever disk that lies.
TEST(Best, ALinkInPlaceOfBestOrLastIsRefused) {
  const WorkFolder work;
  train(tiny_config(2), work / "run");
  fs::rename(work / "run/best", work / "moved");
  for (const char* name : {"run/best", "run/last"}) {
    fs::create_directory_symlink(work / "moved", work / name);
    Ran ran;
    const Error error = train_error(ran, tiny_config(4), work / "run", {.resume = ResumeMode::kNewest});
    EXPECT_EQ(error.kind(), ErrorKind::kWrite) << error.what();
    EXPECT_NE(error.message().find(work / name + " is a link"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("remove the link"), std::string::npos) << error.what();
    EXPECT_TRUE(ran.steps.empty());
    EXPECT_TRUE(fs::is_symlink(work / name));
    fs::remove(work / name);
  }
  EXPECT_TRUE(train(tiny_config(4), work / "run", {.resume = ResumeMode::kNewest}).outcome.finished);
}

// The last checkpoint takes the place of one of the two that stay, and best/ that of the other.
TEST(Best, ABestModelThatHadNoRoomIsWrittenAtTheEnd) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", 4 << 20);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  TrainConfig config = tiny_config(4);
  config.train.save_every = 2;
  const Ran ran = train(config, work / "disk/run", {.step = [&](const TrainStatus& status) {
                          if (status.step != 3) return;
                          const size_t room = fs::space(work / "disk").available;
                          std::ofstream(work / "disk/filler") << std::string(room - 16384, 'x');
                        }});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_TRUE(ran.told("write_failed", "best/ not written"));
  EXPECT_TRUE(ran.told("best_written", "the result of step 4"));
  EXPECT_EQ(ran.events_of("old_best"), 0);
  ASSERT_EQ(ran.evals.size(), 1u);
  EXPECT_EQ(ran.outcome.best, ran.evals[0].top1);
  EXPECT_EQ(CheckpointStore(work / "disk/run").steps(), std::vector<int64_t>{4});
  EXPECT_EQ(open_model(work / "disk/run/best")->card().config.width, 16);
}

// The checkpoint says that its weights are those of the best result.
TEST(Best, ABestModelThatCouldNotBeWrittenIsWrittenByTheNextLife) {
  const WorkFolder work;
  const TrainConfig config = tiny_config(4);
  train(config, work / "whole");
  const Ran blocked = train(config, work / "run", {.step = [&](const TrainStatus& status) {
                              if (status.step == 1) write_file(work / "run/best", "in the way");
                            }});
  EXPECT_TRUE(blocked.told("old_best", "there is no best/, but the best one"));
  EXPECT_EQ(blocked.events_of("best_written"), 0);
  fs::remove(work / "run/best");
  const Ran ran = train(config, work / "run", {.resume = ResumeMode::kNewest});
  EXPECT_TRUE(ran.told("best_written", "the result of step 4"));
  EXPECT_EQ(ran.events_of("old_best"), 0);
  EXPECT_EQ(ran.outcome.best, blocked.evals.at(0).top1);
  EXPECT_EQ(read_file(work / "run/best/model.safetensors", 1 << 20),
            read_file(work / "whole/best/model.safetensors", 1 << 20));
}

// The room comes after the next update: what would be written is another model than the one of that result.
TEST(Best, ABestModelWhoseWeightsAreGoneIsToldOf) {
  const WorkFolder work;
  TrainConfig config = tiny_config(40);
  config.train.eval_every = 2;
  const Ran ran = train(config, work / "run", {.stop_after = 3, .step = [&](const TrainStatus& status) {
                                                 if (status.step == 1)
                                                   write_file(work / "run/best", "in the way");
                                                 if (status.step == 3) fs::remove(work / "run/best");
                                               }});
  EXPECT_EQ(ran.outcome.step, 3);
  EXPECT_EQ(ran.events_of("best_written"), 0);
  EXPECT_EQ(ran.events_of("old_best"), 1);
  EXPECT_FALSE(fs::exists(work / "run/best"));
}

// A parameter that is NaN makes every score NaN: that is no result, though top-1 of 0 is more than none.
TEST(Best, AnEvaluationWithoutALossIsNoBest) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  config.schedule.kind = ScheduleKind::kConstant;
  config.optim.lr = 1e308;
  const Ran ran = train(config, work / "run");
  EXPECT_TRUE(ran.outcome.finished);
  ASSERT_EQ(ran.evals.size(), 1u);
  EXPECT_FALSE(std::isfinite(ran.evals[0].loss));
  EXPECT_FALSE(ran.evals[0].best);
  EXPECT_TRUE(ran.told("no_result", "not finite"));
  EXPECT_LT(ran.outcome.best, 0);
  EXPECT_FALSE(fs::exists(work / "run/best"));
}

}  // namespace
}  // namespace vitrail::testing
