// Numbers and sentences that a run tells of itself, checked without running one.
#include <gtest/gtest.h>

#include "train/helpers/tiny_run.h"
#include "train/learned_from.h"
#include "train/micro_feed.h"
#include "train/run_setup.h"
#include "train/slow_ranks.h"
#include "train/step_times.h"
#include "train/train_state.h"
#include "train/whole_check.h"

namespace vitrail::testing {
namespace {

std::string told(double predicted, const std::vector<double>& seconds, bool alone = true) {
  UpdateSeconds updates(predicted);
  for (const double s : seconds) updates.add(s);
  return updates.text(alone);
}

TEST(UpdateSeconds, SetsTheMedianAgainstThePrediction) {
  EXPECT_EQ(told(0.010, {9, 0.012, 0.011, 0.013}),
            "update: 10.0 ms predicted, 12.0 ms measured (median of 3): 20.0 % longer");
  EXPECT_EQ(told(0.020, {9, 0.015}, false),
            "update: 20.0 ms predicted without what ranks exchange, 15.0 ms measured (median of 1): 25.0 % "
            "shorter");
  EXPECT_EQ(told(0.020, {9}), "") << "the first update does not count";
  EXPECT_EQ(told(0, {9, 0.015}), "");
  std::vector<double> many(1025, 1.0);
  many.insert(many.end(), 600, 3.0);
  EXPECT_EQ(told(1, many), "update: 1.00 s predicted, 3.00 s measured (median of 1024): 200.0 % longer");
}

TEST(StartTimes, PhasesComeInTheirOrder) {
  StartTimes times({{"launch", 0.5}});
  EXPECT_EQ(times.timed("plan", [] { return 7; }), 7);
  times.add("first update", 2);
  ASSERT_EQ(times.phases().size(), 3u);
  EXPECT_EQ(times.phases()[0], (std::pair<std::string, double>{"launch", 0.5}));
  EXPECT_EQ(times.phases()[1].first, "plan");
  EXPECT_EQ(times.phases()[2], (std::pair<std::string, double>{"first update", 2}));
}

TEST(LoadingText, AddsUpTheRanks) {
  EXPECT_EQ(loading_text({1.5}), "loading training images took 1.50 s of processor time");
  EXPECT_EQ(loading_text({1.5, 0.25}),
            "loading training images took 1.75 s of processor time: rank 0 1.50, rank 1 0.25");
}

TEST(SlowRankText, HasBothTimesInMilliseconds) {
  EXPECT_EQ((SlowRank{2, 0.1804, 0.1}).text(),
            "rank 2 has been slow for 20 updates: 180 ms of its own work in each, 100 before");
  EXPECT_EQ(checked_text(12), "--check whole: 12 nodes of the sharded step agree with the whole one");
}

// One and a half times as long as usual is slow, and so are 20 ms more, whichever is later.
TEST(SlowRankText, TheLimitIsMetExactly) {
  const auto named = [](double usual, double now) {
    SlowRanks ranks(2);
    for (int i = 0; i <= SlowRanks::kUsual; ++i) ranks.add(std::vector<double>{usual, usual});
    std::vector<SlowRank> slow;
    for (int i = 0; i < SlowRanks::kLong; ++i)
      for (const SlowRank& one : ranks.add(std::vector<double>{usual, now})) slow.push_back(one);
    return slow;
  };
  EXPECT_EQ(named(0.5, 0.7499).size(), 0u);
  EXPECT_EQ(named(0.03125, 0.0512).size(), 0u);
  EXPECT_EQ(named(0.03125, 0.0513).size(), 1u);
  const std::vector<SlowRank> slow = named(0.5, 0.75);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_DOUBLE_EQ(slow[0].now_s, 0.75);
  EXPECT_DOUBLE_EQ(slow[0].before_s, 0.5);
}

TEST(StepTimes, EachNumberIsItsOwn) {
  EXPECT_EQ(StepTimes::computes_of(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}), (std::vector<double>{1, 5}));
  StepTimes times(1);
  times.start();
  CollectiveTimes collectives;
  collectives.exposed_s = 5;
  collectives.kinds[static_cast<size_t>(CollectiveKind::kAllGather)] = {.count = 3, .bytes = 7, .seconds = 2};
  const StepTimes::Numbers numbers = times.end_update(collectives, 4);
  EXPECT_EQ(numbers[0], 0) << "never less than nothing";
  times.add(numbers);
  times.end_update(collectives, 0);
  const TimingStatus taken = times.take(3);
  ASSERT_EQ(taken.collectives.size(), 1u);
  EXPECT_EQ(taken.collectives[0].kind, "all_gather");
  EXPECT_EQ(taken.collectives[0].count, 6);
  EXPECT_EQ(taken.collectives[0].bytes, 14);
  EXPECT_EQ(taken.collectives[0].seconds, 4);
  EXPECT_EQ(taken.ranks[0].data_wait_s, 4);
  EXPECT_EQ(taken.ranks[0].exposed_s, 5);
  EXPECT_EQ(times.take(4).collectives.size(), 0u);
}

TEST(Progress, IsReadBackAsItWasWritten) {
  const Progress progress{.step = 9,
                          .best = 0.5,
                          .best_step = 7,
                          .best_seen = 0.625,
                          .owed = 0.75,
                          .owed_step = 8,
                          .evals_since_best = 2,
                          .skipped_in_a_row = 1,
                          .lr_factor = 0.25,
                          .rollbacks = 3,
                          .eval_due = true};
  const Progress read = progress_from({{"progress", to_json(progress)}});
  EXPECT_EQ(to_json(read), (Json{{"step", 9},
                                 {"best", 0.5},
                                 {"best_step", 7},
                                 {"best_seen", 0.625},
                                 {"owed", 0.75},
                                 {"owed_step", 8},
                                 {"evals_since_best", 2},
                                 {"skipped_in_a_row", 1},
                                 {"lr_factor", 0.25},
                                 {"rollbacks", 3},
                                 {"eval_due", true}}));
  const Progress fresh = progress_from({{"progress", Json::object()}});
  EXPECT_EQ(fresh.best, -1);
  EXPECT_EQ(fresh.lr_factor, 1);
  for (const Json& wrong : {Json::object(), Json{{"progress", 3}}}) {
    try {
      progress_from(wrong);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
    }
  }
}

TEST(LearnedFrom, IsReadBackAsItWasWritten) {
  DataConfig config;
  config.train = "synthetic:3x8x8x4x300", config.val_fraction = 0.25, config.fraction = 0.5;
  config.classes = {"0", "2"}, config.class_names = {"a", "b"};
  const auto data = open_dataset(config.train, Part::kTrain);
  const LearnedFrom learned = learned_from(config, *data);
  EXPECT_EQ(learned.division.train, "") << "a published model names no folder";
  EXPECT_TRUE(learned.split);
  EXPECT_EQ(learned.size, data->size());
  EXPECT_LE(learned.images.size(), 256u);
  EXPECT_GE(learned.images.size(), 150u);
  const auto read = read_learned_from({{kLearnedFrom, to_json(learned)}});
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(learned));
  EXPECT_EQ(read->images, learned.images);
  EXPECT_EQ(read->division.val_fraction, 0.25);
  EXPECT_EQ(read->division.fraction, 0.5);
  EXPECT_EQ(read->division.classes, config.classes);
  EXPECT_EQ(read->division.class_names, config.class_names);
  EXPECT_TRUE(is_same(*read, *data));
  LearnedFrom other = *read;
  other.size += 1;
  EXPECT_FALSE(is_same(other, *data));
  other = *read, other.names[0] = other.names[0] == '0' ? '1' : '0';
  EXPECT_FALSE(is_same(other, *data));
  other = *read, other.contents[0] = other.contents[0] == '0' ? '1' : '0';
  EXPECT_FALSE(is_same(other, *data));
  config.val = "synthetic:3x8x8x4x30";
  const LearnedFrom apart = learned_from(config, *data);
  EXPECT_FALSE(apart.split);
  EXPECT_EQ(apart.division.train, "");
  EXPECT_EQ(apart.division.val, "") << "nor any other";
}

TEST(LearnedFrom, FactsThatAreNoneAreNone) {
  const LearnedFrom learned = learned_from({}, *open_dataset("synthetic:3x8x8x4x20", Part::kTrain));
  EXPECT_FALSE(read_learned_from(Json::object()));
  for (const char* key : {"names", "contents", "size", "split", "val_fraction", "fraction", "images"}) {
    Json json = to_json(learned);
    json.erase(key);
    EXPECT_FALSE(read_learned_from({{kLearnedFrom, json}})) << key;
  }
  Json json = to_json(learned);
  json["images"] = {"12-00000000000000ff", "no mark", "7-1"};
  const auto read = read_learned_from({{kLearnedFrom, json}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->images, (std::vector<ImageMark>{{12, 255}, {7, 1}}));
}

}  // namespace
}  // namespace vitrail::testing
