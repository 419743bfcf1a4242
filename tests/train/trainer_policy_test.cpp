// When a run evaluates, saves and continues, and how it treats bad images, disks and checkpoints.
#include <gtest/gtest.h>

#include <fstream>

#include "data/decode.h"
#include "faults/small_disk.h"
#include "train/helpers/tiny_run.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

Steps evaluated(const Ran& ran) {
  Steps steps;
  for (const EvalStatus& status : ran.evals) steps.push_back(status.step);
  return steps;
}

TEST(Policy, EvaluatesSavesAndKeepsAsAsked) {
  const WorkFolder work;
  TrainConfig config = tiny_config(11);  // epochs of 5
  config.train.eval_every = 4;
  config.train.save_every = 2;
  config.checkpoint.keep_last = 2;
  config.checkpoint.keep_every = 4;
  EXPECT_EQ(evaluated(train(config, work / "a")), (Steps{4, 8, 11}));
  EXPECT_EQ(CheckpointStore(work / "a").steps(), (Steps{4, 8, 10, 11}));
  config.train.eval_every = 0;
  config.train.log_every = 3;
  config.checkpoint.keep_every = 0;
  EXPECT_EQ(evaluated(train(config, work / "b")), (Steps{5, 10, 11}));
  EXPECT_EQ(CheckpointStore(work / "b").steps(), (Steps{10, 11}));
  Steps logged, epochs;
  for_each_metrics_line(RunFiles(work / "b").metrics(), [&](const Json& line) {
    if (metrics_text(line, "kind") == "train") logged.push_back(line["step"]);
    if (metrics_text(line, "kind") == "epoch") epochs.push_back(line["step"]);
  });
  EXPECT_EQ(logged, (Steps{3, 6, 9, 11}));
  EXPECT_EQ(epochs, (Steps{5, 10, 11}));
  for (const char* file : {"config.json", "summary.csv", "report.html", "best/model.safetensors"})
    EXPECT_TRUE(fs::exists(work / "b/" + file)) << file;
}

TEST(Policy, OneRunAFolder) {
  const WorkFolder work;
  const TrainConfig config = tiny_config(2);
  {
    RankContext rank(cpu_device(1));
    Trainer holder(config, {work / "run", ResumeMode::kFresh, ""}, cpu_backend(), rank, {});
    for (ResumeMode mode : {ResumeMode::kFresh, ResumeMode::kNewest}) {
      Ran second;
      const Error error = train_error(second, config, work / "run", {.resume = mode});
      EXPECT_EQ(error.kind(), ErrorKind::kWrite);
      EXPECT_NE(error.message().find("another run uses this folder"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(holder.run().finished);
  }
  Ran later;
  const Error error = train_error(later, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_NE(error.hint().find("--resume"), std::string::npos);
}

// The checkpoint folder is a plain file for a while.
TEST(Policy, GoesOnWhenACheckpointCannotBeWritten) {
  const WorkFolder work;
  TrainConfig config = tiny_config(6);
  config.train.save_every = 2;
  const std::string place = work / "run/checkpoints", aside = work / "aside";
  const Ran ran = train(config, work / "run", {.step = [&](const TrainStatus& status) {
                          if (status.step == 3) {
                            fs::rename(place, aside);
                            std::ofstream(place) << "in the way";
                          }
                          if (status.step == 5) {
                            fs::remove(place);
                            fs::rename(aside, place);
                          }
                        }});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_EQ(ran.events_of("write_failed"), 1);
  EXPECT_TRUE(ran.told("write_failed", "checkpoint not written"));
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (Steps{0, 2, 6}));
  train(config, work / "whole");
  EXPECT_EQ(differing(state_of(work / "run"), state_of(work / "whole")), std::vector<std::string>());
}

TEST(Policy, GoesOnWhenTheDiskIsFull) {
  const WorkFolder work;
  const SmallDisk disk(work / "disk", 4 << 20);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  TrainConfig config = tiny_config(8);
  config.train.save_every = 2;
  config.train.eval_every = 4;
  const std::string filler = work / "disk/filler";
  const Ran ran = train(config, work / "disk/run", {.step = [&](const TrainStatus& status) {
                          if (status.step == 3)
                            std::ofstream(filler) << std::string(fs::space(work / "disk").available, 'x');
                          if (status.step == 7) fs::remove(filler);
                        }});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_TRUE(ran.told("write_failed", "checkpoint not written"));
  EXPECT_EQ(CheckpointStore(work / "disk/run").steps(), (Steps{0, 2, 8}));
  train(config, work / "whole");
  EXPECT_EQ(differing(state_of(work / "disk/run"), state_of(work / "whole")), std::vector<std::string>());
}

TEST(Policy, WhatMakesRoomIsTold) {
  const WorkFolder work;
  train(tiny_config(1), work / "one");
  size_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(CheckpointStore(work / "one").folder_of(1)))
    bytes += fs::file_size(entry);
  const SmallDisk disk(work / "disk", 8 * bytes);
  if (!disk.made()) GTEST_SKIP() << "file systems cannot be mounted here";
  TrainConfig config = tiny_config(5);
  config.train.save_every = 1;
  config.checkpoint.keep_last = 5;
  const Ran ran = train(config, work / "disk/run", {.step = [&](const TrainStatus& status) {
                          if (status.step != 4) return;
                          const size_t room = fs::space(work / "disk").available;
                          std::ofstream(work / "disk/filler") << std::string(room - bytes / 2, 'x');
                        }});
  EXPECT_TRUE(ran.outcome.finished);
  EXPECT_TRUE(ran.told("made_room", "step 0"));
  EXPECT_EQ(ran.events_of("write_failed"), 0);
}

// Two classes of twenty images, some of them cut short or empty.
std::string image_folder(const WorkFolder& work, const Steps& broken) {
  for (int64_t i = 0; i < 40; ++i) {
    Image image = Image::blank(8, 8, 3);
    for (size_t at = 0; at < image.pixels.size(); ++at)
      image.pixels[at] = static_cast<uint8_t>((i % 2 ? 200 : 60) + static_cast<int64_t>(at * 7 % 31));
    std::vector<uint8_t> png = encode_png(image);
    if (std::find(broken.begin(), broken.end(), i) != broken.end()) png.resize(i % 4 ? png.size() / 2 : 0);
    const std::string folder = work / (std::string("images/train/") + (i % 2 ? "light" : "dark"));
    fs::create_directories(folder);
    write_file(strf("%s/%02lld.png", folder.c_str(), static_cast<long long>(i)),
               {reinterpret_cast<const char*>(png.data()), png.size()});
  }
  return "folder:" + (work / "images");
}

TEST(Policy, BrokenImagesFailOrAreSkippedByName) {
  const WorkFolder work;
  TrainConfig config = tiny_config(10);
  config.data.train = image_folder(work, {12, 17});
  config.data.val_fraction = 0;
  Ran failed;
  const Error error = train_error(failed, config, work / "fail");
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  const std::string said = error.what();
  EXPECT_TRUE(said.starts_with("train/dark/12.png: ") || said.starts_with("train/light/17.png: ")) << said;

  config.loader.on_error = OnError::kSkip;
  config.loader.max_bad_fraction = 0.05;
  const Ran skipped = train(config, work / "skip");
  EXPECT_TRUE(skipped.outcome.finished);
  EXPECT_EQ(skipped.events_of("bad_sample"), 2) << "each is told once";
  EXPECT_TRUE(skipped.told("bad_sample", "dark/12.png"));
  EXPECT_TRUE(skipped.told("bad_sample", "light/17.png"));

  config.loader.max_bad_fraction = 0.01;
  Ran many;
  EXPECT_EQ(train_error(many, config, work / "many").kind(), ErrorKind::kData);
}

TEST(Policy, ADamagedCheckpointIsPassedOverAndSaid) {
  const WorkFolder work;
  TrainConfig config = tiny_config(9);
  config.train.save_every = 2;
  train(config, work / "whole");
  for (const char* file : {"state-00000-of-00001.safetensors", "model.safetensors", "manifest.json"}) {
    SCOPED_TRACE(file);
    const std::string folder = work / (std::string("run-") + file);
    train(config, folder, {.stop_after = 6});
    const std::string path = CheckpointStore(folder).folder_of(6) + "/" + file;
    std::string bytes = read_file(path, 1 << 20);
    bytes[bytes.size() / 2] ^= 1;
    write_file(path, bytes);
    Ran strict;
    const Error error = train_error(strict, config, folder, {.resume = ResumeMode::kStrict});
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.message().find(file), std::string::npos) << error.what();
    const Ran ran = train(config, folder, {.resume = ResumeMode::kNewest});
    EXPECT_TRUE(ran.noted("checkpoint passed over"));
    EXPECT_TRUE(ran.told("resume", "step 4"));
    EXPECT_EQ(differing(state_of(folder), state_of(work / "whole")), std::vector<std::string>());
    EXPECT_EQ(metrics_of(folder), metrics_of(work / "whole"));
  }
}

TEST(Policy, AModelOfAnotherRunIsNotOverwritten) {
  const WorkFolder work;
  const TrainConfig config = tiny_config(2);
  train(config, work / "run");
  const Tensors before = state_of(work / "run");
  Ran ran;
  TrainConfig other = config;
  other.train.seed = 3;
  EXPECT_EQ(train_error(ran, other, work / "run").kind(), ErrorKind::kUsage);
  EXPECT_EQ(differing(state_of(work / "run"), before), std::vector<std::string>());
}

TEST(Policy, ARunWithoutAGoodCheckpointIsNotBegunAnew) {
  const WorkFolder work;
  TrainConfig config = tiny_config(4);
  config.train.save_every = 2;
  config.train.eval_every = 2;
  train(config, work / "run");
  const auto log = metrics_of(work / "run");
  for (const int64_t step : CheckpointStore(work / "run").steps()) {
    const std::string path = CheckpointStore(work / "run").folder_of(step) + "/model.safetensors";
    std::string bytes = read_file(path, 1 << 20);
    bytes[bytes.size() / 2] ^= 1;
    write_file(path, bytes);
  }
  Ran damaged, removed;
  EXPECT_EQ(train_error(damaged, config, work / "run", {.resume = ResumeMode::kNewest}).kind(),
            ErrorKind::kData);
  std::filesystem::remove_all(work / "run/checkpoints");
  EXPECT_EQ(train_error(removed, config, work / "run", {.resume = ResumeMode::kNewest}).kind(),
            ErrorKind::kData);
  EXPECT_EQ(metrics_of(work / "run"), log);
}

TEST(Policy, ABestModelThatCannotBeWrittenIsNoBest) {
  const WorkFolder work;
  TrainConfig config = tiny_config(4);
  config.train.eval_every = 2;
  const Ran blocked = train(config, work / "run", {.step = [&](const TrainStatus& status) {
                              if (status.step == 1) write_file(work / "run/best", "in the way");
                            }});
  EXPECT_GE(blocked.events_of("write_failed"), 2);
  EXPECT_LT(blocked.outcome.best, 0);
  for (const auto& entry : fs::directory_iterator(work / "run"))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".tmp-")) << entry.path();
}

TEST(Policy, WhatWasLearnedIsKeptWhenTheDataFails) {
  const WorkFolder work;
  const std::string data = work / "data";
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 4; ++i) {
      std::filesystem::create_directories(data + "/train/" + name);
      write_png(data + "/train/" + name + "/" + std::to_string(i) + ".png", Image::blank(8, 8, 3));
    }
  std::filesystem::create_directories(data + "/val/a");
  write_file(data + "/val/a/broken.png", "no image");
  TrainConfig config = tiny_config(3);
  config.data.train = "folder:" + data;
  Ran ran;
  EXPECT_EQ(train_error(ran, config, work / "run").kind(), ErrorKind::kData);
  EXPECT_EQ(CheckpointStore(work / "run").steps(), (Steps{0, 3}));
}

TEST(Policy, DataThatIsNotThereLeavesNoFolder) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1);
  config.data.train = "folder:" + (work / "nowhere");
  Ran ran;
  EXPECT_EQ(train_error(ran, config, work / "run").kind(), ErrorKind::kData);
  EXPECT_FALSE(std::filesystem::exists(work / "run"));
}

}  // namespace
}  // namespace vitrail::testing
