// Samples that ranks cannot read: told by the first rank whoever met them, counted together; and data that
// does not divide among ranks is said.
#include "image_folder.h"

namespace vitrail::testing {
namespace {

TrainConfig skipping_config(const std::string& data, double fraction) {
  TrainConfig config = tiny_config(16);  // four passes
  config.train.batch = 12;
  config.data.train = data;
  config.data.val_fraction = 0;
  config.loader.on_error = OnError::kSkip;
  config.loader.max_bad_fraction = fraction;
  return config;
}

// The middle of an event's text: without the rank that met the sample.
std::set<std::string> told_samples(const Ran& ran) {
  std::set<std::string> names;
  for (const RunEvent& event : ran.events)
    if (event.what == "bad_sample") names.insert(event.text.substr(0, event.text.find(": ")));
  return names;
}

TEST(BadSamplesOfRanks, AreToldOnceByTheFirstRank) {
  const WorkFolder work;
  const TrainConfig config = skipping_config(image_folder(work, {5, 17, 30, 41}), 0.2);
  const Ran one = train(config, work / "one");
  ASSERT_EQ(one.events_of("bad_sample"), 4);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const Ran many = train(config, work / std::to_string(ranks), {.ranks = ranks});
    EXPECT_EQ(many.events_of("bad_sample"), 4);
    EXPECT_EQ(told_samples(many), told_samples(one));
    EXPECT_TRUE(many.told("bad_sample", "(rank 1)")) << "with four of them no rank has met all";
    for (size_t i = 0; i < one.steps.size(); ++i)
      EXPECT_NEAR(many.steps[i].loss, one.steps[i].loss, 1e-5 * one.steps[i].loss) << i;
  }
}

// Ranks of tp read the same images and meet the same samples.
TEST(BadSamplesOfRanks, CountOnceWhereRanksShareImages) {
  const WorkFolder work;
  TrainConfig config = skipping_config(image_folder(work, {5, 17}), 2.0 / 48);
  config.mesh.tp = 2;
  const Ran ran = train(config, work / "run", {.ranks = 2});
  EXPECT_EQ(ran.events_of("bad_sample"), 2);
  EXPECT_TRUE(ran.outcome.finished);
}

// One more than is allowed ends the run on every rank after the same update, and what was learnt is kept.
TEST(BadSamplesOfRanks, AreCountedTogether) {
  const WorkFolder work;
  const TrainConfig config = skipping_config(image_folder(work, {5, 17, 30}), 2.0 / 48);
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    Ran ran;
    const std::string folder = work / std::to_string(ranks);
    const Error error = train_error(ran, config, folder, {.ranks = ranks});
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    EXPECT_NE(error.message().find("3 samples could not be read"), std::string::npos) << error.what();
    EXPECT_LT(ran.steps.size(), 4u) << "within the first pass";
    EXPECT_FALSE(state_of(folder).empty());
  }
}

// Nothing but broken images: a run ends before it could pass for one that has learned, whatever it may skip.
TEST(BadSamplesOfRanks, ARunThatCanReadNoImageFails) {
  const WorkFolder work;
  std::set<int> all;
  for (int i = 0; i < 48; ++i) all.insert(i);
  TrainConfig config = skipping_config(image_folder(work, all), 1);
  config.train.save_every = 1;
  for (const int ranks : {1, 2, 3})
    for (const auto& [steps, made] : {std::pair{2, 2}, std::pair{1000, 4}}) {  // four are a pass
      SCOPED_TRACE(strf("%d ranks, %d steps", ranks, steps));
      const std::string folder = work / strf("%d-%d", ranks, steps);
      config.train.steps = steps;
      Ran ran;
      const Error error = train_error(ran, config, folder, {.ranks = ranks});
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      EXPECT_NE(error.message().find(strf("none of the images of %d updates could be read", made)),
                std::string::npos)
          << error.what();
      EXPECT_EQ(CheckpointStore(folder).steps(), std::vector<int64_t>{0})
          << "nothing learned is nothing saved";
    }
  all.erase(17);
  const WorkFolder other;
  config = skipping_config(image_folder(other, all), 1);
  config.train.steps = 4;
  EXPECT_TRUE(train(config, work / "one", {.ranks = 2}).outcome.finished);
}

TEST(BadSamplesOfRanks, OfAnEvaluationAreToldToo) {
  const WorkFolder work, good;
  TrainConfig config = skipping_config(image_folder(good), 0.1);
  config.data.val = image_folder(work, {5, 17, 30});
  config.train.steps = 2;
  const Ran one = train(config, work / "one"), many = train(config, work / "many", {.ranks = 3});
  EXPECT_EQ(many.events_of("bad_sample"), 3);
  EXPECT_EQ(told_samples(many), told_samples(one));
  EXPECT_EQ(many.evals.back().count, one.evals.back().count);
  EXPECT_EQ(many.evals.back().top1, one.evals.back().top1);
  config.loader.max_bad_fraction = 2.0 / 48;
  Ran refused;
  EXPECT_EQ(train_error(refused, config, work / "refused", {.ranks = 3}).kind(), ErrorKind::kData);
}

// A run that is resumed for an update of broken images alone has learned before, and ends.
TEST(BadSamplesOfRanks, AResumedRunMayEndWithABrokenImage) {
  const WorkFolder work;
  TrainConfig config = skipping_config(image_folder(work, {17, 30}), 1);
  config.train.batch = 1;
  config.train.steps = 48;  // a pass, with two updates of a broken image
  const Ran whole = train(config, work / "whole");
  int64_t before = std::ssize(whole.steps) - 1;
  while (before > 0 && whole.steps[static_cast<size_t>(before)].loss > 0) --before;
  ASSERT_GT(before, 1) << "the later of the two broken images comes after one that is not";
  train(config, work / "parts", {.stop_after = before});
  config.train.steps = before + 1;
  EXPECT_TRUE(train(config, work / "parts", {.resume = ResumeMode::kStrict}).outcome.finished);
}

TEST(BadSamplesOfRanks, AnEvaluationThatCanReadNoImageIsNoResult) {
  const WorkFolder work, good;
  std::set<int> all;
  for (int i = 0; i < 48; ++i) all.insert(i);
  TrainConfig config = skipping_config(image_folder(good), 1);
  config.data.val = image_folder(work, all);
  config.train.steps = 2;
  for (const int ranks : {1, 2}) {
    const std::string folder = work / std::to_string(ranks);
    const Ran ran = train(config, folder, {.ranks = ranks});
    EXPECT_EQ(ran.evals.back().count, 0);
    EXPECT_TRUE(ran.told("no_result", "no image could be read"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/best"));
  }
}

TEST(UnevenShares, AreSaid) {
  const WorkFolder work;
  TrainConfig config = tiny_config(2);
  config.train.batch = 16;
  config.train.eval_batch = 4;
  const Ran ran = train(config, work / "run", {.ranks = 3});
  EXPECT_TRUE(ran.noted("a micro-batch of 16 images is cut unevenly among 3 ranks: 5 to 6 each"));
  EXPECT_TRUE(ran.noted("each pass leaves out 8"));
  const int64_t evaluated = ran.evals.back().count;
  ASSERT_NE(evaluated % 12, 0);
  EXPECT_TRUE(ran.noted(strf("has %lld of 12 images", static_cast<long long>(evaluated % 12))));
  config.train.batch = 20, config.train.eval_batch = evaluated / 2;
  const Ran even = train(config, work / "even", {.ranks = 2});
  for (const char* part : {"unevenly", "leaves out", "padding"}) EXPECT_FALSE(even.noted(part)) << part;
}

}  // namespace
}  // namespace vitrail::testing
