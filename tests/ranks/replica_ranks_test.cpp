// Silent errors: one bit flipped in what one of several replicas holds is found by the next comparison,
// named, and undone by going back to a checkpoint that was verified.
#include <gtest/gtest.h>

#include <atomic>

#include "base/process_mark.h"
#include "base/rng.h"
#include "ranks/shared_run.h"
#include "train/flip_bit.h"

namespace vitrail::testing {
namespace {

using Disturb = std::function<void(TrainStep&, int64_t)>;

// Flips a bit of one rank after an update, once.
struct Flip {
  int rank = 0;
  int64_t step = 1;
  uint64_t random = 0;
  BitPlace place = {};  // drawn where it is empty
  int64_t times = 1;
  BitPlace also = {};  // another place, unless it is empty

  Disturb hook() {
    return [this](TrainStep& train_step, int64_t made) {
      if (train_step.rank().ranks->mesh().rank != rank || made != step || times == 0) return;
      --times;
      if (place.value.empty()) place = drawn_bit(train_step, random);
      flip_bit(train_step, place);
      if (!also.value.empty()) flip_bit(train_step, also);
    };
  }
};

TrainConfig verified_config(int64_t steps, int64_t every) {
  TrainConfig config = shared_config(steps);
  config.mesh.verify_every = every;
  config.train.save_every = 4;
  return config;
}

Json newest_facts(const std::string& folder) {
  return CheckpointStore(folder).newest_good()->facts;
}

// The mesh decides which ranks hold the same: with dp all of them, with tp those of other images, and for
// norms and the like all again.
struct VerifiedMesh {
  const char* name;
  int64_t tp, sp, zero;
  int ranks;
  int64_t pp = 1;
};
const VerifiedMesh kMeshes[] = {{"dp3", 1, 1, 0, 3},      {"dp2", 1, 1, 0, 2},      {"tp2", 2, 1, 0, 2},
                                {"dp2tp2", 2, 1, 0, 4},   {"sp2", 1, 2, 0, 2},      {"dp2sp2", 1, 2, 0, 4},
                                {"dp3zero1", 1, 1, 1, 3}, {"dp2zero3", 1, 1, 3, 2}, {"pp2", 1, 1, 0, 2, 2},
                                {"dp2pp2", 1, 1, 0, 4, 2}};

TEST(Replicas, OfAnUndisturbedRunAgree) {
  for (const VerifiedMesh& mesh : kMeshes) {
    SCOPED_TRACE(mesh.name);
    const WorkFolder work;
    TrainConfig config = verified_config(5, 1);
    config.mesh.tp = mesh.tp, config.mesh.sp = mesh.sp, config.mesh.zero = mesh.zero;
    config.mesh.pp = mesh.pp;
    const Ran ran = train(config, work / "run", {.ranks = mesh.ranks});
    EXPECT_TRUE(ran.outcome.finished);
    EXPECT_EQ(ran.events_of("replica_differs"), 0);
    EXPECT_TRUE(newest_facts(work / "run")["verified"].get<bool>());
    config.mesh.verify_every = 0;
    const Ran plain = train(config, work / "plain", {.ranks = mesh.ranks});
    EXPECT_EQ(plain.losses(), ran.losses()) << "comparing changes nothing";
    EXPECT_FALSE(newest_facts(work / "plain")["verified"].get<bool>());
  }
}

// The first step from `flipped` on after which replicas are compared: every mesh.verify_every updates, and
// before a checkpoint, an evaluation and the end.
int64_t next_comparison(const TrainConfig& config, int64_t flipped) {
  const RunConfig& run = config.train;
  int64_t step = flipped;
  while (step % config.mesh.verify_every != 0 && step % run.save_every != 0 && step % run.eval_every != 0 &&
         step != run.steps)
    ++step;
  return step;
}

// Where gradients became NaN before that, replicas are compared after the update that was left out.
int64_t compared_after(const Ran& ran, const TrainConfig& config, int64_t flipped) {
  const auto left_out =
      std::ranges::find_if(ran.steps, [](const TrainStatus& status) { return status.skipped > 0; });
  const int64_t usual = next_comparison(config, flipped);
  return left_out == ran.steps.end() ? usual : std::min(usual, left_out->step);
}

// Bits of weights and moments, any rank, any step: the run ends as if nothing had been.
TEST(Replicas, AFlippedBitIsNamedAndUndone) {
  const WorkFolder work;
  const TrainConfig config = verified_config(10, 3);
  const Ran calm = train(config, work / "calm", {.ranks = 3});
  const Tensors wanted = state_of(work / "calm");
  const int flips = is_long() ? 50 : 4;
  for (int i = 0; i < flips; ++i) {
    Flip flip{.rank = i % 3,
              .step = 1 + static_cast<int64_t>(counter_hash(5, i) % 10),
              .random = counter_hash(6, i)};
    const std::string folder = work / strf("flip%d", i);
    const Ran ran = train(config, folder, {.disturb = flip.hook(), .ranks = 3});
    SCOPED_TRACE(strf("bit %zu of %s on rank %d after step %lld", flip.place.bit, flip.place.value.c_str(),
                      flip.rank, static_cast<long long>(flip.step)));
    ASSERT_EQ(ran.events_of("replica_differs"), 1);
    EXPECT_TRUE(ran.told("replica_differs", strf("rank %d on ", flip.rank)));
    EXPECT_TRUE(ran.told("replica_differs", "differs from the others of 3 replicas"));
    const int64_t found = compared_after(ran, config, flip.step);
    EXPECT_TRUE(ran.told("replica_differs", strf(" after step %lld: back", static_cast<long long>(found))))
        << ran.events.front().text;
    EXPECT_TRUE(ran.outcome.finished);
    EXPECT_TRUE(differing(state_of(folder), wanted).empty()) << differing(state_of(folder), wanted).front();
    std::filesystem::remove_all(folder);
  }
}

// The comparison follows the update at once, so it is the value itself that is named.
TEST(Replicas, TheValueIsNamed) {
  const WorkFolder work;
  const TrainConfig config = verified_config(5, 1);
  for (const char* value : {"blocks.0.mlp.fc1.weight", "optim/head.weight/v", "ema/norm.bias"}) {
    Flip flip{.rank = 1, .step = 3, .place = {value, 37}};
    const Ran ran = train(config, work / "run", {.disturb = flip.hook(), .ranks = 3});
    EXPECT_EQ(ran.events_of("replica_differs"), 1);
    EXPECT_TRUE(
        ran.told("replica_differs",
                 strf("rank 1 on %s differs from the others of 3 replicas in %s after step 3: back to "
                      "step 0, the last verified checkpoint",
                      ProcessMark::current().host.c_str(), value)))
        << ran.events.front().text;
    std::filesystem::remove_all(work / "run");
  }
}

TEST(Replicas, FurtherValuesAreCounted) {
  const WorkFolder work;
  Flip flip{.rank = 1, .step = 3, .place = {"blocks.0.mlp.fc1.weight", 37}, .also = {"ema/norm.bias", 5}};
  const Ran ran = train(verified_config(4, 1), work / "run", {.disturb = flip.hook(), .ranks = 3});
  EXPECT_TRUE(ran.told("replica_differs", " (and 1 more values) after step 3: back to step 0"));
}

TEST(Replicas, OfTwoTheDifferenceIsSaid) {
  const WorkFolder work;
  const TrainConfig config = verified_config(6, 2);
  const Ran calm = train(config, work / "calm", {.ranks = 2});
  Flip flip{.rank = 1, .step = 5, .random = 3};
  const Ran ran = train(config, work / "run", {.disturb = flip.hook(), .ranks = 2});
  EXPECT_TRUE(ran.told("replica_differs", "rank 0 on "));
  EXPECT_TRUE(ran.told("replica_differs", "rank 1 on "));
  EXPECT_TRUE(ran.told("replica_differs", "no majority"));
  EXPECT_TRUE(ran.told("replica_differs", "back to step 4"));
  EXPECT_TRUE(differing(state_of(work / "run"), state_of(work / "calm")).empty());
  std::vector<std::string> log = metrics_of(work / "run");
  EXPECT_EQ(
      std::erase_if(
          log, [](const std::string& line) { return line.find("replica_differs") != std::string::npos; }),
      1u);
  EXPECT_EQ(log, metrics_of(work / "calm")) << "of the steps that were undone it holds nothing";
}

// With tp, what all ranks hold is compared among all, a part among those that hold it.
TEST(Replicas, UnderTensorParallelismPartsHaveTheirOwn) {
  const WorkFolder work;
  TrainConfig config = verified_config(3, 1);
  config.mesh.tp = 2;
  for (const auto& [value, text] : {std::pair{"blocks.1.norm2.weight", "the others of 4 replicas"},
                                    std::pair{"blocks.1.mlp.fc2.weight", "no majority"}}) {
    Flip flip{.rank = 3, .step = 2, .place = {value, 100}};
    const Ran ran = train(config, work / "run", {.disturb = flip.hook(), .ranks = 4});
    EXPECT_TRUE(ran.told("replica_differs", "rank 3 on ")) << value;
    EXPECT_TRUE(ran.told("replica_differs", text)) << value;
    EXPECT_TRUE(ran.outcome.finished);
    std::filesystem::remove_all(work / "run");
  }
}

TEST(Replicas, ARankThatDiffersAgainEndsTheRun) {
  const WorkFolder work;
  Flip flip{.rank = 2, .step = 3, .random = 8, .times = 2};
  Ran ran;
  const Error error =
      train_error(ran, verified_config(10, 1), work / "run", {.disturb = flip.hook(), .ranks = 3});
  EXPECT_EQ(error.kind(), ErrorKind::kDevice) << error.what();
  EXPECT_NE(std::string(error.what()).find("rank 2 on "), std::string::npos) << error.what();
  EXPECT_TRUE(error.message().ends_with(" after step 3, again right after going back")) << error.message();
  EXPECT_EQ(error.hint(),
            "memory or a device of that host changes values: take it out of the run (its log of ECC errors, "
            "nvidia-smi -q, dmesg); --resume goes on from the last verified checkpoint");
  EXPECT_EQ(ran.events_of("replica_differs"), 1);
}

// A second bit, after a comparison that agreed, is another accident.
TEST(Replicas, ALaterDifferenceIsUndoneToo) {
  const WorkFolder work;
  const TrainConfig config = verified_config(10, 1);
  train(config, work / "calm", {.ranks = 3});
  Flip early{.rank = 1, .step = 2, .random = 8}, late{.rank = 1, .step = 7, .random = 9};
  const Disturb first = early.hook(), second = late.hook();
  const Ran ran = train(config, work / "run",
                        {.disturb =
                             [&](TrainStep& step, int64_t made) {
                               first(step, made);
                               second(step, made);
                             },
                         .ranks = 3});
  EXPECT_EQ(ran.events_of("replica_differs"), 2);
  EXPECT_TRUE(differing(state_of(work / "run"), state_of(work / "calm")).empty());
}

// A weight of 1e38 makes every gradient NaN: the comparison comes with the first update that is left out,
// which asks for it alone, and before the run would go back by itself, at half the learning rate.
TEST(Replicas, AreComparedBeforeARollbackForNan) {
  const WorkFolder work;
  TrainConfig config = verified_config(10, 100);
  config.train.skip_limit = 2;
  config.train.eval_every = 100;
  train(config, work / "calm", {.ranks = 3});
  Flip flip{.rank = 2, .step = 5, .place = {"blocks.0.norm1.weight", 30}};
  const Ran ran = train(config, work / "run", {.disturb = flip.hook(), .ranks = 3});
  EXPECT_TRUE(ran.told("replica_differs", "rank 2 on "));
  EXPECT_TRUE(ran.told("replica_differs", " after step 6: back to step 4"));
  EXPECT_EQ(ran.events_of("rollback"), 0);
  EXPECT_TRUE(differing(state_of(work / "run"), state_of(work / "calm")).empty());
}

// A run that had not been verified is, from where it is resumed.
TEST(Replicas, AResumedRunGetsAVerifiedCheckpoint) {
  const WorkFolder work;
  TrainConfig config = verified_config(10, 0);
  train(config, work / "run", {.stop_after = 3, .ranks = 3});
  config.mesh.verify_every = 2;
  Flip flip{.rank = 0, .step = 4, .random = 1};
  const Ran ran =
      train(config, work / "run", {.resume = ResumeMode::kNewest, .disturb = flip.hook(), .ranks = 3});
  EXPECT_TRUE(ran.told("replica_differs", "back to step 3"));
  EXPECT_TRUE(ran.outcome.finished);
}

}  // namespace
}  // namespace vitrail::testing
