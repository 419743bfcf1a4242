// Which images `eval` takes of a run and its data, and what it says of images the run has learned from: a
// model must never be praised for what it has memorised.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "data/encode.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr int kImages = 120, kClasses = 4;

std::string noise_png(uint64_t number) {
  Image image = Image::blank(8, 8, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(counter_hash(number, i));
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// A run on images of pure noise with labels drawn at random: nothing can be learned but by heart.
class EvalData : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    for (int i = 0; i < kImages; ++i)
      folder_->file(
          strf("noise/class%llu/%03d.png",
               static_cast<unsigned long long>(counter_hash(99, static_cast<uint64_t>(i)) % kClasses), i),
          noise_png(static_cast<uint64_t>(i)));
    const auto lines =
        json_lines(run_in_process("train", tiny_run() +
                                               settings({"data.train=" + noise(), "train.epochs=120",
                                                         "augment.hflip=0", "optim.lr=0.01"}) +
                                               Arguments{"--out", run()})
                       .out);
    for (const auto& line : lines)
      if (line["kind"] == "eval" && line["best"]) best_ = line;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string noise() { return "folder:" + (folder_->path() / "noise").string(); }
  static std::string run() { return (folder_->path() / "run").string(); }
  static Answer eval(const Arguments& arguments) { return run_in_process("eval", arguments); }

  static std::unique_ptr<TempFolder> folder_;
  static nlohmann::json best_;  // the run's own line about its best model
};
std::unique_ptr<TempFolder> EvalData::folder_;
nlohmann::json EvalData::best_;

void expect_all_held_out(const Answer& answer, const nlohmann::json& measured) {
  const auto found = answer.json();
  EXPECT_EQ(found["count"], measured["count"]);
  EXPECT_EQ(found["top1"], measured["top1"]);
  EXPECT_EQ(found["part"], "val");
  EXPECT_EQ(found["seen_in_training"], 0.0);
  EXPECT_LT(found["top1"].get<double>(), 0.75) << "noise cannot be known";
}

TEST_F(EvalData, ARunOnItsOwnDataTakesItsValidationPart) {
  const Answer answer = eval({"-m", run(), "--data", noise()});
  expect_all_held_out(answer, best_);
  EXPECT_NE(answer.err.find("kept for validation"), std::string::npos) << answer.err;
  EXPECT_EQ(answer.err.find("warning"), std::string::npos) << answer.err;
  expect_all_held_out(eval({"-m", run()}), best_);
}

// The same data and the same model by other names.
TEST_F(EvalData, WhateverTheDataAndTheModelAreCalled) {
  const fs::path link = folder_->path() / "link";
  fs::create_directory_symlink(folder_->path() / "noise", link);
  fs::copy(folder_->path() / "noise", folder_->path() / "copy", fs::copy_options::recursive);
  for (const std::string& data : {noise() + "/", noise() + "/../noise", "folder:" + link.string(),
                                  "folder:" + (folder_->path() / "copy").string()})
    for (const std::string& model : {run(), run() + "/", run() + "/best"}) {
      SCOPED_TRACE(data + " " + model);
      expect_all_held_out(eval({"-m", model, "--data", data}), best_);
    }
  expect_all_held_out(eval({"-m", run(), "--data", noise(), "--part", "val"}), best_);
}

TEST_F(EvalData, WhatWasLearnedFromIsSaid) {
  const auto held_out = best_["count"].get<double>();
  const struct {
    const char* part;
    double count, seen;
  } rows[] = {{"all", kImages, 1 - held_out / kImages}, {"train", kImages, 1 - held_out / kImages}};
  for (const auto& row : rows) {
    // The last weights, which know the training images by heart; best/ are those that guessed best.
    const Answer answer = eval({"-m", run() + "/checkpoints/latest", "--data", noise(), "--part", row.part});
    const auto found = answer.json();
    EXPECT_EQ(found["count"], row.count);
    EXPECT_NEAR(found["seen_in_training"].get<double>(), row.seen, 1e-9);
    EXPECT_NE(answer.err.find("warning: the run has learned from"), std::string::npos) << answer.err;
    EXPECT_GT(found["top1"].get<double>(), 0.6) << "learned by heart, or this test shows nothing";
  }
}

// Some images of the training data among others, in a folder of another shape.
TEST_F(EvalData, PartsOfTheTrainingDataAreFoundAgain) {
  int taken = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder_->path() / "noise")) {
    if (!file.is_regular_file() || ++taken > 40) continue;
    const fs::path to = folder_->path() / "mixed/train" / file.path().parent_path().filename();
    fs::create_directories(to);
    fs::copy_file(file.path(), to / file.path().filename());
  }
  for (int i = 0; i < 40; ++i)  // other noise, half of it under names of the training data
    folder_->file(strf("mixed/train/class%d/%03d%s.png", i % kClasses, i, i % 2 ? "-new" : "-x"),
                  noise_png(static_cast<uint64_t>(1000 + i)));
  const Answer answer =
      eval({"-m", run(), "--data", "folder:" + (folder_->path() / "mixed").string(), "--part", "train"});
  const double seen = answer.json()["seen_in_training"];
  EXPECT_GT(seen, 0.4 - 0.1 * 0.5);
  EXPECT_LE(seen, 0.5);
  EXPECT_NE(answer.err.find("warning"), std::string::npos) << answer.err;
}

// The same names and labels are not the same images.
TEST_F(EvalData, OtherImagesOfTheSameNamesAreAllTaken) {
  for (const auto& file : fs::recursive_directory_iterator(folder_->path() / "noise"))
    if (file.is_regular_file())
      folder_->file("twin/" + fs::relative(file.path(), folder_->path() / "noise").string(),
                    noise_png(name_key(file.path().string())));
  const Answer answer = eval({"-m", run(), "--data", "folder:" + (folder_->path() / "twin").string()});
  EXPECT_EQ(answer.json()["count"], kImages);
  EXPECT_EQ(answer.json()["seen_in_training"], 0.0);
  EXPECT_EQ(answer.err.find("warning"), std::string::npos) << answer.err;
}

TEST_F(EvalData, AModelOfNoRunAndARunWithoutItsDataSayNothing) {
  fs::copy(run() + "/best", folder_->path() / "alone", fs::copy_options::recursive);
  const auto alone = eval({"-m", (folder_->path() / "alone").string(), "--data", noise()}).json();
  EXPECT_EQ(alone["count"], kImages);
  EXPECT_FALSE(alone.contains("seen_in_training"));
  fs::copy(folder_->path() / "noise", folder_->path() / "later", fs::copy_options::recursive);
  fs::rename(folder_->path() / "noise", folder_->path() / "gone");
  const auto later = eval({"-m", run(), "--data", "folder:" + (folder_->path() / "later").string()}).json();
  fs::rename(folder_->path() / "gone", folder_->path() / "noise");
  EXPECT_EQ(later["count"], kImages);
  EXPECT_FALSE(later.contains("seen_in_training"));
}

}  // namespace
}  // namespace vitrail::cli
