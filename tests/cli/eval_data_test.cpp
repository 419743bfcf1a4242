// Which images `eval` uses of a run and its data, and what it reports about images the run was trained on: a
// model must never be credited for what it has memorised.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "data/decode.h"
#include "tiny_training.h"
#include "working_folder.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr int kImageCount = 120, kClasses = 4;

std::string noise_png(uint64_t number) {
  Image image = Image::blank(8, 8, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(counter_hash(number, i));
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// A run on images of pure noise with random labels: they can only be memorised.
class EvalData : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    for (int i = 0; i < kImageCount; ++i)
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
  static std::string data(const std::string& name) { return "folder:" + (folder_->path() / name).string(); }
  static double share_learned() { return 1 - best_["count"].get<double>() / kImageCount; }
  // A folder of the same images, in the same classes, under other names.
  static void renamed(const std::string& name) {
    for (const auto& file : fs::recursive_directory_iterator(folder_->path() / "noise"))
      if (file.is_regular_file())
        folder_->file(name + "/" + file.path().parent_path().filename().string() + "/copy-of-" +
                          file.path().filename().string(),
                      read_file(file.path().string(), 1 << 20));
  }
  static std::string run() { return (folder_->path() / "run").string(); }
  static Answer eval(const Arguments& arguments) { return run_in_process("eval", arguments); }

  static std::unique_ptr<TempFolder> folder_;
  static nlohmann::json best_;  // the run's own line about its best model
};
std::unique_ptr<TempFolder> EvalData::folder_;
nlohmann::json EvalData::best_;

// A folder that is somewhere else while this lives.
class Away {
 public:
  explicit Away(fs::path folder) : folder_(std::move(folder)) { fs::rename(folder_, aside()); }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  ~Away() { fs::rename(aside(), folder_); }

 private:
  fs::path aside() const { return folder_.string() + ".gone"; }
  fs::path folder_;
};

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
  } rows[] = {{"all", kImageCount, 1 - held_out / kImageCount},
              {"train", kImageCount, 1 - held_out / kImageCount}};
  for (const auto& row : rows) {
    // The last weights, which have memorised the training images; best/ holds those that guessed best.
    const Answer answer = eval({"-m", run() + "/checkpoints/latest", "--data", noise(), "--part", row.part});
    const auto found = answer.json();
    EXPECT_EQ(found["count"], row.count);
    EXPECT_NEAR(found["seen_in_training"].get<double>(), row.seen, 1e-9);
    EXPECT_NE(answer.err.find("warning: the model has learned from"), std::string::npos) << answer.err;
    EXPECT_GT(found["top1"].get<double>(), 0.6) << "learned by heart, or this test shows nothing";
  }
}

// Half of these images are training data, in a folder of another shape; of the others, which are new, half
// have names of the training data.
TEST_F(EvalData, PartsOfTheTrainingDataAreFoundAgain) {
  int number = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder_->path() / "noise")) {
    if (!file.is_regular_file()) continue;
    const std::string place = "mixed/train/" + file.path().parent_path().filename().string() + "/";
    const std::string name = file.path().filename().string();
    if (++number % 2)
      folder_->file(place + name, read_file(file.path().string(), 1 << 20));
    else
      folder_->file(place + (number % 4 ? name : "new-" + name), noise_png(1000 + name_key(name)));
  }
  const Answer answer = eval({"-m", run(), "--data", data("mixed"), "--part", "train"});
  EXPECT_EQ(answer.json()["count"], kImageCount);
  const double seen = answer.json()["seen_in_training"];
  EXPECT_GT(seen, 0.35);  // of the first half, some were held out
  EXPECT_LE(seen, 0.5);
  EXPECT_NE(answer.err.find("warning"), std::string::npos) << answer.err;
}

// The same bytes under other names cannot be split as the run split them; that they were trained on is known.
TEST_F(EvalData, OtherFileNamesHideNothing) {
  renamed("renamed");
  const Answer answer = eval({"-m", run(), "--data", data("renamed")});
  EXPECT_EQ(answer.json()["part"], "all");
  EXPECT_NEAR(answer.json()["seen_in_training"].get<double>(), share_learned(), 1e-9);
  EXPECT_NE(answer.err.find("warning: the model has learned from"), std::string::npos) << answer.err;
}

// The same names and labels are not the same images.
TEST_F(EvalData, OtherImagesOfTheSameNamesAreAllTaken) {
  for (const auto& file : fs::recursive_directory_iterator(folder_->path() / "noise"))
    if (file.is_regular_file())
      folder_->file("twin/" + fs::relative(file.path(), folder_->path() / "noise").string(),
                    noise_png(name_key(file.path().string())));
  const Answer answer = eval({"-m", run(), "--data", "folder:" + (folder_->path() / "twin").string()});
  EXPECT_EQ(answer.json()["count"], kImageCount);
  EXPECT_EQ(answer.json()["seen_in_training"], 0.0);
  EXPECT_EQ(answer.err.find("warning"), std::string::npos) << answer.err;
}

// Without the training data at its place, the fingerprints stored with the model decide.
TEST_F(EvalData, DataThatMovedIsKnownAgain) {
  renamed("strange");
  fs::copy(folder_->path() / "noise", folder_->path() / "later", fs::copy_options::recursive);
  const std::string pack = (folder_->path() / "noise.pack").string();
  run_in_process("data pack", {noise(), "--out", pack});
  const Away away(folder_->path() / "noise");
  for (const std::string& name : {data("later"), "packed:" + pack}) {
    SCOPED_TRACE(name);
    const Answer answer = eval({"-m", run(), "--data", name});
    expect_all_held_out(answer, best_);
    EXPECT_EQ(answer.json()["data"], name) << "the data that was asked for";
  }
  const Answer strange = eval({"-m", run(), "--data", data("strange")});
  EXPECT_NEAR(strange.json()["seen_in_training"].get<double>(), share_learned(), 1e-9);
  EXPECT_NE(strange.err.find("warning"), std::string::npos) << strange.err;
}

TEST_F(EvalData, AModelThatLeftItsRunKnowsWhatItLearnedFrom) {
  renamed("other-names");
  fs::copy(run() + "/best", folder_->path() / "alone", fs::copy_options::recursive);
  const std::string alone = (folder_->path() / "alone").string();
  expect_all_held_out(eval({"-m", alone, "--data", noise()}), best_);
  expect_all_held_out(eval({"-m", alone + "/model.safetensors", "--data", noise()}), best_);
  const auto seen = eval({"-m", alone, "--data", data("other-names")}).json()["seen_in_training"];
  EXPECT_NEAR(seen.get<double>(), share_learned(), 1e-9);
  EXPECT_EQ(read_file(alone + "/manifest.json", 1 << 20).find(folder_->path().string()), std::string::npos)
      << "a model that may be published names no folder of its author";
}

// In every form that a model can be converted to, from each form.
TEST_F(EvalData, AConvertedModelKnowsWhatItLearnedFrom) {
  renamed("of-converted");
  std::string from = run();
  for (const Arguments& target : {Arguments{"hf"},
                                  {"timm", "--to", "timm"},
                                  {"one.safetensors"},
                                  {"one.npz"},
                                  {"back.safetensors"},
                                  {"folder-again"}}) {
    const std::string to = (folder_->path() / "converted" / target[0]).string();
    SCOPED_TRACE(from + " to " + to);
    run_in_process("convert", Arguments{from, to} + Arguments(target.begin() + 1, target.end()));
    expect_all_held_out(eval({"-m", to, "--data", noise()}), best_);
    const auto seen = eval({"-m", to, "--data", data("of-converted")}).json()["seen_in_training"];
    EXPECT_NEAR(seen.get<double>(), share_learned(), 1e-9);
    from = to;
  }
}

TEST_F(EvalData, ARunsOwnTrainingPartIsTakenWhereItIsAskedFor) {
  const Answer answer = eval({"-m", run(), "--part", "train"});
  EXPECT_EQ(answer.json()["part"], "train");
  EXPECT_EQ(answer.json()["count"], kImageCount - best_["count"].get<int>());
  EXPECT_EQ(answer.json()["seen_in_training"], 1.0);
  EXPECT_NE(answer.err.find("warning: the model has learned from"), std::string::npos) << answer.err;
}

// Images that came after the run are in its data: what it learned from is no longer there to compare with.
TEST_F(EvalData, ARunsDataThatHasChangedSinceIsSaid) {
  fs::copy(folder_->path() / "noise", folder_->path() / "grown", fs::copy_options::recursive);
  const std::string own = (folder_->path() / "grown-run").string();
  run_in_process("train", tiny_run() + settings({"data.train=" + data("grown")}) + Arguments{"--out", own});
  EXPECT_EQ(eval({"-m", own}).err.find("has changed"), std::string::npos);
  for (int i = 0; i < 12; ++i)
    folder_->file(strf("grown/class%d/new%02d.png", i % kClasses, i),
                  noise_png(5000 + static_cast<uint64_t>(i)));
  const Arguments parts[] = {{}, {"--part", "train"}};
  for (const Arguments& part : parts) {
    const Answer answer = eval(Arguments{"-m", own} + part);
    const std::string warning = "warning: " + data("grown") + " has changed since the run learned from it";
    const size_t at = answer.err.find(warning);
    ASSERT_NE(at, std::string::npos) << answer.err;
    EXPECT_EQ(answer.err.find(warning, at + 1), std::string::npos) << "once: " << answer.err;
    EXPECT_NE(answer.err.find("seen_in_training is not certain"), std::string::npos) << answer.err;
  }
}

TEST_F(EvalData, WhatIsNotKnownIsSaid) {
  fs::copy(run() + "/best", folder_->path() / "mute", fs::copy_options::recursive);
  fs::remove(folder_->path() / "mute/manifest.json");
  const Answer answer = eval({"-m", (folder_->path() / "mute").string(), "--data", noise()});
  EXPECT_EQ(answer.json()["count"], kImageCount);
  EXPECT_FALSE(answer.json().contains("seen_in_training"));
  EXPECT_NE(answer.err.find("is not known"), std::string::npos) << answer.err;
}

// A config keeps the data's place as it was given; the run is found from another folder all the same.
TEST_F(EvalData, PlacesAreThoseOfTheFolderTheRunWasStartedIn) {
  std::string started = folder_->path().string();
  {
    const WorkingFolder there(started);
    run_in_process("train",
                   tiny_run() + settings({"data.train=folder:noise"}) + Arguments{"--out", "runs/relative"});
  }
  renamed("runs/renamed");
  const WorkingFolder there(started + "/runs");
  EXPECT_EQ(eval({"-m", "relative", "--data", "folder:../noise"}).json()["part"], "val");
  EXPECT_EQ(eval({"-m", "relative"}).json()["seen_in_training"], 0.0);
  const Answer answer = eval({"-m", "relative", "--data", "folder:renamed"});
  EXPECT_NEAR(answer.json()["seen_in_training"].get<double>(), share_learned(), 1e-9);
  EXPECT_EQ(answer.err.find("mark"), std::string::npos) << "the data itself is at hand: " << answer.err;
}

}  // namespace
}  // namespace vitrail::cli
