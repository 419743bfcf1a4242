// What commands tell of their progress, line by line: how much of the work is done, of how much, and what was
// last. Rates and times left are the clock's.
#include <gtest/gtest.h>

#include <regex>

#include "base/text.h"
#include "base/timing.h"
#include "data/decode.h"
#include "hurried_clock.h"
#include "measure/kernel_table_file.h"
#include "source_root.h"
#include "tiny_training.h"

namespace vitrail::cli {
namespace {

using Words = std::vector<std::string>;
const std::string kGolden = std::string(VT_SOURCE_DIR) + "/tests/golden/models/hf_single";

TEST(HurriedClock, EveryLookIsLater) {
  const HurriedClock clock;
  const auto first = Clock::now();
  EXPECT_GE(Clock::now() - first, std::chrono::seconds(20));
}

// "eval: 8/20 images (40 %)" for every line of progress, with its note behind it.
Words progress_of(const std::string& command, const Words& arguments) {
  const HurriedClock clock;
  const std::string err = run_in_process(command, arguments).err;
  static const std::regex kCount("[a-z ]+: [0-9,]+(/[0-9,]+)? [A-Za-z]+( \\([0-9]+ %\\))?");
  Words lines;
  for (const std::string_view line : split(err, '\n')) {
    const std::string count(line.substr(0, line.find("  ")));
    if (!std::regex_match(count, kCount)) continue;
    lines.push_back(count);
    for (size_t at = count.size(), end; at < line.size(); at = end) {
      end = std::min(line.find("  ", at + 2), line.size());
      const std::string_view part = line.substr(at, end - at);
      if (!part.ends_with("/s") && !part.starts_with("  ETA ")) lines.back() += part;
    }
  }
  return lines;
}

Words counted(const char* title, const char* unit, const std::vector<int>& done, int total) {
  Words lines;
  for (const int n : done)
    lines.push_back(total == 0 ? strf("%s: %d %s", title, n, unit)
                               : strf("%s: %d/%d %s (%.0f %%)", title, n, total, unit,
                                      static_cast<double>(n) / total * 100));
  return lines;
}

std::vector<int> up_to(int last) {
  std::vector<int> numbers;
  for (int n = 1; n <= last; ++n) numbers.push_back(n);
  return numbers;
}

std::string plain_png(uint8_t level) {
  Image image = Image::blank(16, 16, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), level);
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

TEST(ProgressLines, OfModelsCountEveryTensorAndParameterOnce) {
  const TempFolder folder;
  const int tensors = static_cast<int>(run_in_process("inspect", {kGolden}).json()["tensors"].size());
  EXPECT_EQ(progress_of("inspect", {kGolden, "--stats"}),
            counted("inspect", "tensors", up_to(tensors), tensors));
  const std::string out = (folder.path() / "m.safetensors").string();
  const int params = run_in_process("convert", {kGolden, out}).json()["tensors"].get<int>();
  EXPECT_EQ(progress_of("convert", {kGolden, out, "--force"}),
            counted("convert", "parameters", up_to(params), params) +
                counted("verify", "parameters", up_to(params), params));
}

TEST(ProgressLines, OfImagesCountEachOnce) {
  const TempFolder folder;
  Words images;
  for (uint8_t i = 0; i < 5; ++i)
    images.push_back(folder.file(strf("images/%s/%d.png", i % 2 ? "b" : "a", i), plain_png(i)));
  const std::string all = (folder.path() / "images").string(), data = "folder:" + all;
  const auto out = [&](const char* name) { return (folder.path() / name).string(); };
  const Words one = {"--threads", "1"};
  EXPECT_EQ(progress_of("predict", Words{"-m", kGolden, all, "--batch", "2"} + one),
            counted("predict", "images", {2, 4, 5}, 5));
  EXPECT_EQ(
      progress_of("explain",
                  Words{"-m", kGolden, images[0], images[1], "--method", "mean", "-o", out("maps")} + one),
      counted("explain", "images", {1, 2}, 2));
  for (const Words& command : {Words{"data check", "check"},
                               {"data stats", "stats"},
                               {"data pack", "pack", "-o", out("p")},
                               {"data show", "show", "-o", out("s.png")}}) {
    const Words told = progress_of(command[0], Words{data} + Words(command.begin() + 2, command.end()) + one);
    EXPECT_EQ(told, counted(command[1].c_str(), "images", {5}, 5)) << command[0];
  }
  const Words rounds = progress_of("bench stream", Words{"-m", kGolden, all, "--rounds", "2"} + one);
  EXPECT_EQ(rounds, counted("bench stream", "rounds", {1, 2}, 2));
}

TEST(ProgressLines, OfAnEvaluationCountBatches) {
  const TempFolder folder;
  const std::string run = (folder.path() / "run").string();
  run_in_process("train", tiny_run() + settings({"train.epochs=1"}) + Words{"--out", run});
  const Words eval = {"-m", run,         "--data", "synthetic:3x8x8x4x30", "--part", "train", "--batch",
                      "8",  "--threads", "1"};
  EXPECT_EQ(progress_of("eval", eval), counted("eval", "images", {8, 16, 24, 30}, 30));
}

// By time, how many runs there will be is not known.
TEST(ProgressLines, OfBenchmarksCountRuns) {
  const Words model = {"--weights", "rule", "-m",        "vit_tiny_patch16_224",
                       "--image",   "32",   "--threads", "1",
                       "--seconds", "0",    "--warmup",  "2"};
  for (const Words& more : {Words{}, Words{"--mesh", "dp=2"}})
    EXPECT_EQ(progress_of("bench infer", model + more), counted("bench", "runs", {1, 2, 3}, 0))
        << more.size();
  EXPECT_EQ(progress_of("profile", model), counted("profile", "runs", {1, 2, 3}, 0));
  const Words train =
      tiny_model() + Words{"--classes", "4", "--batch", "8", "--threads", "1", "--warmup", "1"};
  EXPECT_EQ(progress_of("bench train", train + Words{"--steps", "4"}), counted("bench", "runs", up_to(4), 4));
  EXPECT_EQ(progress_of("bench train", train + Words{"--seconds", "0"}),
            counted("bench", "runs", {1, 2, 3}, 0));
  EXPECT_EQ(progress_of("profile", train + Words{"--train", "--seconds", "0"}),
            counted("profile", "runs", {1, 2, 3}, 0));
  EXPECT_EQ(progress_of("bench dist", {"--mb", "0.01", "--seconds", "0"}),
            counted("bench dist", "runs", {1, 2, 3}, 0));
}

// Each GEMM is told with the kernel that was fastest.
TEST(ProgressLines, OfTuningNameTheFastestKernel) {
  const TempFolder folder;
  const Words tune = {"--gemm", "5x16x8",    "--gemm", "6x16x8", "--rounds",
                      "1",      "--threads", "1",      "-o",     (folder.path() / "k.json").string()};
  const Words told = progress_of("bench tune", tune);
  ASSERT_EQ(told.size(), 2u);
  const KernelsFile kept = read_kernels((folder.path() / "k.json").string());
  ASSERT_NE(kept.table, nullptr);
  const char* const counts[] = {"tune: 1/2 GEMMs (50 %)  5x16x8 ", "tune: 2/2 GEMMs (100 %)  6x16x8 "};
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(told[i], counts[i] + kept.table->rows()[i].kernels.front());
}

}  // namespace
}  // namespace vitrail::cli
