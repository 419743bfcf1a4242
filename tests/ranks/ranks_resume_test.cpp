// Runs that go on with other ranks, meshes and ZeRO stages, in the middle of an epoch, from the checkpoint as
// it is: the samples and losses are those of a run of one rank.
#include <gtest/gtest.h>

#include "io/safetensors.h"
#include "io/sealed_folder.h"
#include "ranks/fewer_settings.h"
#include "ranks/shared_run.h"
#include "train/group_relay.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

// A run of some ranks until a step or the one after; 0: to its end.
struct Leg {
  int ranks;
  int64_t until, zero = 0, tp = 1, sp = 1;
  int left_of =
      0;  // as `launch --allow-fewer` goes on when so many ranks have become fewer; 0: as configured
};

TrainConfig on(const Leg& leg, TrainConfig config) {
  config.mesh.zero = leg.zero, config.mesh.tp = leg.tp, config.mesh.sp = leg.sp;
  return leg.left_of > 0 ? applied(config, settings_for_fewer(config, leg.left_of, leg.ranks)) : config;
}

// 200 images are 8 updates of 24: every leg but the last ends within an epoch.
TrainConfig epochs_config() {
  TrainConfig config = shared_config(13);
  config.data.train = "synthetic:3x8x8x4x200";
  return config;
}
constexpr int64_t kInEpoch = 8;

// The samples that all ranks together load for a step, in the order of the batch: micro-batch by micro-batch.
std::vector<int64_t> samples_of(const TrainConfig& config, const Leg& leg, int64_t step) {
  std::vector<std::vector<int64_t>> micros;
  for (int rank = 0; rank < leg.ranks; ++rank) {
    const RunSetup setup = set_up(on(leg, config), cpu_device(1), {rank, leg.ranks, leg.ranks});
    EXPECT_EQ(setup.steps_per_epoch, kInEpoch);
    if (receives_images(setup.step.distribution.mesh)) continue;  // it gets what another rank has loaded
    const auto loader = make_train_loader(*setup.data.train, setup.loader_settings(Purpose::kTrain));
    micros.resize(static_cast<size_t>(setup.config.train.accumulation));
    loader->seek(step);
    for (std::vector<int64_t>& micro : micros) {
      const Batch& batch = loader->next();
      micro.insert(micro.end(), batch.samples.begin(), batch.samples.end());
    }
  }
  std::vector<int64_t> samples;
  for (const auto& micro : micros) samples.insert(samples.end(), micro.begin(), micro.end());
  return samples;
}

struct Journey {
  const char* name;
  std::vector<Leg> legs;
};

class RanksResume : public ::testing::TestWithParam<Journey> {};

TEST_P(RanksResume, GoesOnAsIfNothingHadChanged) {
  const WorkFolder folder;
  const TrainConfig config = epochs_config();
  const Ran whole = train(config, folder / "whole");
  std::vector<double> losses;
  ResumeMode resume = ResumeMode::kFresh;
  int64_t at = 0;
  for (const Leg& leg : GetParam().legs) {
    EXPECT_EQ(samples_of(config, leg, at), samples_of(config, {1, 0}, at)) << "from step " << at;
    const Ran part = train(on(leg, config), folder / "parts",
                           {.resume = resume, .stop_after = leg.until, .ranks = leg.ranks});
    for (const double loss : part.losses()) losses.push_back(loss);
    resume = ResumeMode::kStrict;
    if (leg.until == 0) break;
    at = part.outcome.step;  // ranks agree to stop an update later
    EXPECT_NE(at % kInEpoch, 0) << "not in the middle of an epoch";
    const Manifest manifest = require_manifest(CheckpointStore(folder / "parts").folder_of(at));
    EXPECT_EQ(manifest.pieces, leg.ranks == 1 ? 0 : leg.ranks);
  }
  expect_near(losses, whole.losses(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Journeys, RanksResume,
    ::testing::Values(
        Journey{"Ranks4To2To3To1", {{4, 3}, {2, 5}, {3, 10}, {1, 0}}},
        Journey{"Zero0To3To1", {{2, 3, 0}, {3, 5, 3}, {4, 10, 1}, {2, 0, 2}}},
        Journey{"TensorParallelToData4", {{2, 5, 0, 2}, {4, 0}}},
        Journey{"FewerRanksAreLeft", {{4, 3}, {3, 5, 0, 1, 1, 4}, {2, 10, 0, 1, 1, 4}, {1, 0, 0, 1, 1, 4}}},
        Journey{"FewerRanksAreLeftOfAHybrid", {{4, 3, 1, 2}, {2, 0, 1, 2, 1, 4}}},
        Journey{"HybridsToOneAndBack", {{4, 2, 3, 2}, {1, 4}, {4, 6, 1, 1, 2}, {2, 10, 3}, {4, 0, 2, 2}}}),
    [](const auto& journey) { return journey.param.name; });

// Every element is written by one rank, and the work is shared where all of them hold everything.
TEST(RanksCheckpoint, EveryRankWritesItsShare) {
  const WorkFolder folder;
  TrainConfig config = shared_config(2);
  train(config, folder / "one");
  const Tensors one = state_of(folder / "one");
  size_t total = 0;
  for (const auto& [name, bytes] : one) total += bytes.size();
  for (const int64_t zero : {0, 3}) {
    SCOPED_TRACE(zero);
    config.mesh.zero = zero;
    const std::string run = folder / strf("zero%d", static_cast<int>(zero));
    train(config, run, {.ranks = 4});
    size_t written = 0, largest = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const auto piece = open_safetensors(CheckpointStore(run).folder_of(2) + "/" + piece_name(rank, 4));
      size_t bytes = 0;
      for (const TensorInfo& info : piece->tensors()) bytes += info.bytes;
      written += bytes;
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(written, total);
    EXPECT_LE(static_cast<double>(largest), 0.3 * static_cast<double>(total));
  }
}

TEST(RanksCheckpoint, ADamagedPieceSendsAllRanksToTheOneBefore) {
  const WorkFolder folder;
  TrainConfig config = epochs_config();
  config.train.save_every = 2;
  const Ran whole = train(config, folder / "whole");
  train(config, folder / "run", {.stop_after = 6, .ranks = 3});
  const std::string piece = CheckpointStore(folder / "run").folder_of(6) + "/" + piece_name(2, 3);
  std::filesystem::resize_file(piece, std::filesystem::file_size(piece) - 4);
  Ran ran;
  EXPECT_EQ(train_error(ran, config, folder / "run", {.resume = ResumeMode::kStrict, .ranks = 2}).kind(),
            ErrorKind::kData);
  const Ran rest = train(config, folder / "run", {.resume = ResumeMode::kNewest, .ranks = 2});
  EXPECT_TRUE(rest.noted("checkpoint passed over: ")) << rest.notes.size();
  ASSERT_FALSE(rest.steps.empty());
  EXPECT_EQ(rest.steps[0].step, 5);
  const std::vector<double> all = whole.losses();
  expect_near(rest.losses(), {all.begin() + 4, all.end()}, 1e-5);
}

// Pieces that are lost, doubled or of another save: a strict resume ends with what is wrong, in its own words
// and with the code of bad data, on as many ranks as wrote it and on others.
TEST(RanksCheckpoint, AStrictResumeRefusesPiecesThatAreMissingDoubledOrOfAnotherSave) {
  namespace fs = std::filesystem;
  const WorkFolder folder;
  TrainConfig config = epochs_config();
  config.train.save_every = 2;
  train(config, folder / "run", {.stop_after = 6, .ranks = 3});
  const CheckpointStore store(folder / "run");
  const std::string name = piece_name(1, 3), piece = store.folder_of(6) + "/" + name;
  const std::string kept = folder / "kept";
  fs::copy_file(piece, kept);
  const auto refused = [&](const std::string& part) {
    for (const int ranks : {3, 2}) {
      Ran ran;
      const Error error =
          train_error(ran, config, folder / "run", {.resume = ResumeMode::kStrict, .ranks = ranks});
      EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
      EXPECT_EQ(exit_code(error.kind()), 65);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_TRUE(ran.steps.empty());
    }
  };
  fs::remove(piece);
  refused(name);
  seal_folder(store.folder_of(6));
  refused("does not list " + name);
  const std::pair<std::string, const char*> others[] = {
      {store.folder_of(6) + "/" + piece_name(0, 3), "it is another piece than its name says"},
      {store.folder_of(4) + "/" + name, "it is a piece of another save"}};
  for (const auto& [from, says] : others) {
    fs::copy_file(from, piece, fs::copy_options::overwrite_existing);
    seal_folder(store.folder_of(6));
    refused(says);
  }
  fs::copy_file(kept, piece, fs::copy_options::overwrite_existing);
  seal_folder(store.folder_of(6));
  const Ran rest = train(config, folder / "run", {.resume = ResumeMode::kStrict, .ranks = 2});
  ASSERT_FALSE(rest.steps.empty());
  EXPECT_EQ(rest.steps[0].step, 7);
}

}  // namespace
}  // namespace vitrail::testing
