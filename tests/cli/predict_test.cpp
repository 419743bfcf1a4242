// What predict gives beside the likeliest classes: logits, images turned as EXIF says, names of classes.
#include <gtest/gtest.h>

#include <cmath>

#include "data/image_list.h"
#include "in_process.h"
#include "source_root.h"

namespace vitrail::cli {
namespace {

const std::string kHubModel = std::string(VT_SOURCE_DIR) + "/tests/golden/models/timm_hub";
const std::string kImage = std::string(VT_SOURCE_DIR) + "/examples/images/chelsea.png";
const std::string kTurned = std::string(VT_SOURCE_DIR) + "/tests/golden/images/exif6.jpg";

std::vector<double> logits_of(const std::vector<std::string>& more, std::string* said = nullptr) {
  std::vector<std::string> arguments = {"-m", kHubModel, "--logits"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Answer answer = run_in_process("predict", arguments);
  if (said) *said = answer.err;
  return answer.json()["logits"];
}

TEST(Predict, LogitsAreWhatProbabilitiesAreMadeOf) {
  const std::vector<double> logits = logits_of({kImage});
  ASSERT_EQ(logits.size(), 5u);
  double sum = 0;
  for (const double value : logits) sum += std::exp(value);
  const auto answer = run_in_process("predict", {"-m", kHubModel, "-k", "5", kImage}).json();
  for (const auto& row : answer["top"])
    EXPECT_NEAR(row["prob"].get<double>(), std::exp(logits[row["class"].get<size_t>()]) / sum, 1e-6);
  EXPECT_THROW(run_in_process("predict", {"-m", kHubModel, "--logits", "--embed", kImage}), Error);
}

TEST(Predict, ExifIsAppliedWhenAskedForAndOtherwiseSaid) {
  std::string said;
  const std::vector<double> stored = logits_of({kTurned}, &said);
  EXPECT_TRUE(said.starts_with("1 image has an EXIF orientation that was not applied")) << said;
  const Answer two = run_in_process("predict", {"-m", kHubModel, kTurned, kTurned});
  EXPECT_TRUE(two.err.starts_with("2 images have an EXIF orientation that was not applied")) << two.err;
  const std::vector<double> upright = logits_of({"--exif", kTurned}, &said);
  EXPECT_EQ(said.find("EXIF"), std::string::npos) << said;
  EXPECT_NE(stored, upright);
  logits_of({kImage}, &said);
  EXPECT_EQ(said.find("EXIF"), std::string::npos) << said;
}

// 1 is how an image lies anyway, and 9 is no orientation.
TEST(Predict, OnlyAnOrientationThatWouldTurnTheImageIsSaid) {
  const TempFolder folder;
  const std::string plain = read_file(VT_SOURCE_DIR "/tests/golden/images/ycbcr_444.jpg", 1 << 20);
  for (char orientation = 0; orientation <= 9; ++orientation) {
    std::string exif(
        "\xff\xe1\0\x22"
        "Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0",
        28);
    exif += orientation + std::string(7, '\0');
    std::string note;
    load_listed_image(folder.file("turned.jpg", plain.substr(0, 2) + exif + plain.substr(2)), false, note);
    const bool turns = orientation > 1 && orientation < 9;
    EXPECT_EQ(note.find(strf("EXIF orientation %d not applied", orientation)) != std::string::npos, turns)
        << note;
    EXPECT_EQ(note.empty(), !turns) << note;
  }
}

}  // namespace
}  // namespace vitrail::cli
