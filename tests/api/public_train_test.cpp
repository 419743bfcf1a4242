// Training through the public API: callbacks, ranks, mistakes. Includes vitrail/ alone.
#include <gtest/gtest.h>
#include <unistd.h>
#include <vitrail/version.h>
#include <vitrail/vitrail.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using vitrail::ErrorKind;
using vitrail::Resume;
namespace fs = std::filesystem;

// Eight updates on synthetic images, evaluated twice.
const std::string kConfig = R"({
  "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
  "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
  "train": {"batch": 16, "steps": 8, "eval_every": 4, "save_every": 4, "tensorboard": false}
})";

class PublicTrain : public testing::Test {
 public:
  PublicTrain() {
    std::string name = (fs::temp_directory_path() / "vitrail-train-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  PublicTrain(const PublicTrain&) = delete;
  PublicTrain& operator=(const PublicTrain&) = delete;
  ~PublicTrain() override { fs::remove_all(root_); }

 protected:
  std::string folder(const char* name) const { return (root_ / name).string(); }
  fs::path root_;
};

template <typename Body>
ErrorKind kind_of(const Body& body) {
  try {
    body();
  } catch (const vitrail::Error& error) {
    EXPECT_FALSE(error.message().empty());
    return error.kind();
  }
  return ErrorKind::kInternal;
}

struct Seen {
  std::vector<double> losses;
  std::vector<int64_t> evals, checkpoints;
};

vitrail::TrainCallbacks watching(Seen& seen) {
  vitrail::TrainCallbacks callbacks;
  callbacks.on_step = [&](const vitrail::StepReport& step) { seen.losses.push_back(step.loss); };
  callbacks.on_eval = [&](const vitrail::EvalReport& eval) { seen.evals.push_back(eval.step); };
  callbacks.on_checkpoint = [&](int64_t step) { seen.checkpoints.push_back(step); };
  return callbacks;
}

TEST_F(PublicTrain, TellsOfStepsEvaluationsAndCheckpoints) {
  Seen seen;
  const auto result = vitrail::train(kConfig, {.folder = folder("run"), .threads = 1}, watching(seen));
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.step, 8);
  EXPECT_TRUE(result.best);
  EXPECT_EQ(seen.losses.size(), 8u);
  EXPECT_EQ(seen.evals, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(seen.checkpoints, (std::vector<int64_t>{0, 4, 8}));
  EXPECT_EQ(vitrail::Model::load(folder("run")).classes(), 4) << "a run's folder is a model";
}

// The best result of a run that got nothing right is 0.
TEST_F(PublicTrain, TheBestResultMayBeNothingRight) {
  const std::string config = R"({
    "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
    "data": {"train": "synthetic:3x16x16x50x64", "val": "synthetic:3x16x16x50x4"},
    "optim": {"lr": 1e-9}, "train": {"batch": 16, "steps": 1, "tensorboard": false}})";
  std::vector<std::optional<double>> top1;
  vitrail::TrainCallbacks callbacks;
  callbacks.on_eval = [&](const vitrail::EvalReport& eval) { top1.push_back(eval.top1); };
  const auto wrong = vitrail::train(config, {.folder = folder("wrong"), .threads = 1}, callbacks);
  ASSERT_EQ(top1, std::vector<std::optional<double>>{0.0})
      << "a model that learned nothing guesses none of four in fifty";
  ASSERT_TRUE(wrong.best);
  EXPECT_EQ(*wrong.best, 0);
}

TEST_F(PublicTrain, AStopInsideACallbackSavesAndGoesOnToTheSameBits) {
  Seen whole, first, second;
  vitrail::train(kConfig, {.folder = folder("whole"), .threads = 1}, watching(whole));
  std::stop_source stop;
  vitrail::TrainCallbacks callbacks = watching(first);
  callbacks.on_step = [&](const vitrail::StepReport& step) {
    first.losses.push_back(step.loss);
    if (step.step == 3) stop.request_stop();
  };
  const auto stopped =
      vitrail::train(kConfig, {.folder = folder("cut"), .threads = 1}, callbacks, stop.get_token());
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.step, 3);
  EXPECT_FALSE(stopped.best) << "before the first evaluation";
  const auto rest = vitrail::train(
      kConfig, {.folder = folder("cut"), .threads = 2, .resume = Resume::kNewest}, watching(second));
  EXPECT_TRUE(rest.finished);
  first.losses.insert(first.losses.end(), second.losses.begin(), second.losses.end());
  EXPECT_EQ(first.losses, whole.losses);
}

TEST_F(PublicTrain, WhatACallbackThrowsComesOutAndTheRunCanGoOn) {
  vitrail::TrainCallbacks callbacks;
  callbacks.on_step = [](const vitrail::StepReport& step) {
    if (step.step == 6) throw std::runtime_error("mine");
  };
  const vitrail::TrainOptions options{.folder = folder("run"), .threads = 1};
  EXPECT_THROW(vitrail::train(kConfig, options, callbacks), std::runtime_error);
  Seen seen;
  const auto result = vitrail::train(
      kConfig, {.folder = folder("run"), .threads = 1, .resume = Resume::kNewest}, watching(seen));
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(seen.losses.size(), 4u) << "from the checkpoint of step 4";
}

TEST_F(PublicTrain, EveryCallbackMayThrow) {
  const auto thrown = [](int64_t step) {
    if (step == 4) throw std::runtime_error("mine");
  };
  vitrail::TrainCallbacks eval, checkpoint, event, note;
  eval.on_eval = [&](const vitrail::EvalReport& report) { thrown(report.step); };
  checkpoint.on_checkpoint = thrown;
  event.on_event = [&](const vitrail::TrainEvent&) { thrown(4); };
  note.on_note = [&](const std::string&) { thrown(4); };
  int run = 0;
  for (const vitrail::TrainCallbacks* callbacks : {&eval, &checkpoint, &event, &note}) {
    const std::string place = folder(("run" + std::to_string(run++)).c_str());
    EXPECT_THROW(vitrail::train(kConfig, {.folder = place, .threads = 1}, *callbacks), std::runtime_error)
        << place;
    const auto rest = vitrail::train(kConfig, {.folder = place, .threads = 1, .resume = Resume::kNewest});
    EXPECT_TRUE(rest.finished && rest.step == 8) << place;
  }
}

// A strict run goes on from the newest checkpoint or not at all. What made it, and where, stands beside it.
// Returns the files of a folder and of what is in it, in order.
std::vector<fs::path> files_under(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST_F(PublicTrain, CheckpointsSayWhichVersionRanAndWhere) {
  vitrail::train(kConfig, {.folder = folder("run"), .threads = 1});
  std::string text;
  for (const fs::path& path : files_under(root_ / "run" / "checkpoints")) {
    std::ifstream file(path, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_NE(text.find(std::string("Vitrail ") + vitrail::version()), std::string::npos);
  EXPECT_NE(text.find(fs::current_path().string()), std::string::npos);
}

TEST_F(PublicTrain, ABrokenCheckpointEndsAStrictRun) {
  const vitrail::TrainOptions first{.folder = folder("run"), .threads = 1};
  vitrail::train(kConfig, first);
  std::vector<fs::path> states = files_under(root_ / "run" / "checkpoints");
  std::erase_if(states, [](const fs::path& path) { return path.extension() != ".safetensors"; });
  ASSERT_FALSE(states.empty());
  const fs::path newest = states.back();
  fs::resize_file(newest, fs::file_size(newest) - 1);
  vitrail::TrainOptions later = first;
  later.resume = Resume::kStrict;
  EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, later); }), ErrorKind::kData);
  later.resume = Resume::kNewest;
  EXPECT_TRUE(vitrail::train(kConfig, later).finished);
}

// What is thrown need not be an exception of the standard library.
TEST_F(PublicTrain, CallbacksMayThrowAnything) {
  struct Own {
    int number;
  };
  vitrail::TrainCallbacks callbacks;
  callbacks.on_step = [](const vitrail::StepReport& step) {
    if (step.step == 6) throw Own{42};
  };
  for (const int ranks : {1, 2}) {
    vitrail::TrainOptions options{
        .folder = folder(ranks == 1 ? "alone" : "shared"), .threads = 1, .ranks = ranks};
    int number = 0;
    try {
      vitrail::train(kConfig, options, callbacks);
    } catch (const Own& own) {
      number = own.number;
    }
    EXPECT_EQ(number, 42) << ranks << " ranks";
    options.resume = Resume::kNewest;
    EXPECT_TRUE(vitrail::train(kConfig, options).finished) << ranks << " ranks";
  }
}

TEST_F(PublicTrain, RanksShareEveryBatch) {
  Seen alone, shared;
  vitrail::train(kConfig, {.folder = folder("alone"), .threads = 1}, watching(alone));
  const auto result =
      vitrail::train(kConfig, {.folder = folder("shared"), .threads = 1, .ranks = 2}, watching(shared));
  EXPECT_TRUE(result.finished && result.best);
  ASSERT_EQ(shared.losses.size(), alone.losses.size());
  for (size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(shared.losses[i], alone.losses[i], 1e-5 * alone.losses[i]) << "step " << i + 1;
  EXPECT_EQ(shared.checkpoints, alone.checkpoints);
  EXPECT_EQ(vitrail::Model::load(folder("shared")).classes(), 4);
}

TEST_F(PublicTrain, RanksStopAndFailTogether) {
  std::stop_source stop;
  vitrail::TrainCallbacks stops, throws;
  stops.on_step = [&](const vitrail::StepReport& step) {
    if (step.step == 3) stop.request_stop();
  };
  throws.on_step = [](const vitrail::StepReport& step) {
    if (step.step == 6) throw std::runtime_error("mine");
  };
  const vitrail::TrainOptions first{.folder = folder("run"), .threads = 1, .ranks = 2};
  vitrail::TrainOptions later = first;
  later.resume = Resume::kNewest;
  const auto stopped = vitrail::train(kConfig, first, stops, stop.get_token());
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.step, 4) << "the ranks agree on it with their next update";
  EXPECT_THROW(vitrail::train(kConfig, later, throws), std::runtime_error);
  EXPECT_TRUE(vitrail::train(kConfig, later).finished);
  for (const int ranks : {0, -1, 1 << 20})
    EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, {.folder = folder("none"), .ranks = ranks}); }),
              ErrorKind::kUsage);
  EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, {.folder = folder("none"), .ranks = 17}); }),
            ErrorKind::kConfig)
      << "sixteen images are too few";
  EXPECT_FALSE(fs::exists(folder("none")));
}

TEST_F(PublicTrain, AFormerNameInTheConfigIsNotedOnce) {
  const std::string note = "loader.on_device=pictures is now loader.on_device=images";
  const std::string former = R"({"loader": {"on_device": "pictures"}, )" + kConfig.substr(1);
  for (const int ranks : {1, 2}) {
    int64_t noted = 0;
    const vitrail::TrainCallbacks callbacks{
        .on_note = [&](const std::string& text) { noted += text == note; }};
    const std::string run = folder(ranks == 1 ? "alone" : "shared");
    EXPECT_TRUE(vitrail::train(former, {.folder = run, .threads = 1, .ranks = ranks}, callbacks).finished);
    EXPECT_EQ(noted, 1) << ranks << " ranks";
    const auto notes = vitrail::plan_training(former, {.ranks = ranks}).notes;
    EXPECT_EQ(std::count(notes.begin(), notes.end(), note), 1) << ranks << " ranks";
  }
  const auto usual = vitrail::plan_training(kConfig).notes;
  EXPECT_EQ(std::count(usual.begin(), usual.end(), note), 0);
}

TEST_F(PublicTrain, RunsGoOnSideBySide) {
  std::vector<vitrail::TrainResult> results(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back(
        [&, i] { results[i] = vitrail::train(kConfig, {.folder = folder(i ? "b" : "a"), .threads = 1}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(results[0].finished && results[1].finished);
  EXPECT_EQ(results[0].best, results[1].best);
}

TEST_F(PublicTrain, MistakesMakeNoFolder) {
  const vitrail::TrainOptions options{.folder = folder("run")};
  EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, {}); }), ErrorKind::kUsage);
  EXPECT_EQ(kind_of([&] { vitrail::train("", options); }), ErrorKind::kUsage);
  EXPECT_EQ(kind_of([&] { vitrail::train("/no/such.json", options); }), ErrorKind::kConfig);
  EXPECT_EQ(kind_of([&] { vitrail::train(R"({"train": {"bach": 3}})", options); }), ErrorKind::kConfig);
  EXPECT_EQ(kind_of([&] { vitrail::train(R"({"train": {"batch": "many"}})", options); }), ErrorKind::kConfig);
  EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, {.folder = folder("run"), .device = "tpu"}); }),
            ErrorKind::kUsage);
  EXPECT_EQ(kind_of([&] { vitrail::train(kConfig, {.folder = folder("run"), .threads = -2}); }),
            ErrorKind::kUsage);
  for (const int resume : {-1, 3, 1 << 20})
    EXPECT_EQ(kind_of([&] {
                vitrail::train(kConfig, {.folder = folder("run"), .resume = static_cast<Resume>(resume)});
              }),
              ErrorKind::kUsage)
        << resume;
  EXPECT_FALSE(fs::exists(folder("run")));
}

}  // namespace
