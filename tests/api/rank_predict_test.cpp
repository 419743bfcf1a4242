// A prediction of a list of files below the commands: rows in the order of the list, failures in their
// places, and a stop that names what is done.
#include "api/rank_predict.h"

#include <gtest/gtest.h>

#include "api/model_parts.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

const std::string kRankedModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
const std::string kRankedImages = VT_SOURCE_DIR "/examples/images/";
const std::string kTurned = VT_SOURCE_DIR "/tests/golden/images/exif6.jpg";

struct Predicted {
  std::vector<size_t> order, failed, batches;
  std::vector<std::vector<float>> rows;
  std::vector<std::string> details;
  PredictTimes times;
  size_t not_turned = 0;
};

Predicted predict(const PredictWork& work, size_t stop_after = SIZE_MAX, const InferenceRank& on = {}) {
  Predicted given;
  PredictRank rank(work, on, [&](const std::string& line) { given.details.push_back(line); });
  given.times = rank.run({.on_row =
                              [&](const ImageRow& row) {
                                given.order.push_back(row.index);
                                if (row.error) given.failed.push_back(row.index);
                                given.rows.emplace_back(row.values.begin(), row.values.end());
                              },
                          .on_batch = [&](size_t images) { given.batches.push_back(images); },
                          .stop = [&] { return given.batches.size() >= stop_after; }});
  given.not_turned = rank.not_turned();
  return given;
}

TEST(RankPredict, GivesEveryImageARowInTheOrderOfTheList) {
  const TempFolder folder;
  const auto model = open_model(kRankedModel);
  const std::vector<std::string> paths = {kRankedImages + "chelsea.png", folder.file("bad.png", "no image"),
                                          kRankedImages + "rocket.jpg", kTurned,
                                          kRankedImages + "chelsea.png"};
  const Predicted given =
      predict({.model = *model, .paths = paths, .task = PredictTask::kLogits, .engine = {.batch = 2}});
  EXPECT_EQ(given.order, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(given.failed, std::vector<size_t>{1});
  EXPECT_EQ(given.batches, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(given.not_turned, 1u);
  EXPECT_EQ(given.times.images, paths.size());
  EXPECT_EQ(given.times.batch, 2);
  ASSERT_EQ(given.rows[0].size(), 5u);
  EXPECT_EQ(given.rows[4], given.rows[0]);
  EXPECT_NE(given.rows[2], given.rows[0]);
  ASSERT_FALSE(given.details.empty());
  EXPECT_EQ(given.details.front().rfind("running on ", 0), 0u) << given.details.front();
}

// A GPU has one thread as a device; those that prepare images beside it are the host's. A processor of one
// thread stands for it.
TEST(RankPredict, ThreadsThatPrepareImagesAreTheHosts) {
  EXPECT_EQ(image_threads({.backend = "cuda", .threads = 3}), 3);
  EXPECT_EQ(image_threads({.backend = "cuda"}), processor_threads(0, ""));
  RankContext context(processor_here(1));
  const EngineOptions three{.threads = 3, .rank = &context};
  const auto model = open_model(kRankedModel);
  ModelParts parts(*model, three, false);
  EXPECT_EQ(parts.predictor.engine().plan().device.threads, 1);
  EXPECT_EQ(parts.threads, 3);
  const std::vector<ImageView> images(4, ImageView::file(kRankedImages + "chelsea.png"));
  EXPECT_EQ(parts.inputs(images, 0, 4).size(), 4 * parts.predictor.image_elems());
  const Predicted given = predict({.model = *model, .paths = {kTurned}, .engine = {.threads = 3}}, SIZE_MAX,
                                  {.context = &context});
  EXPECT_EQ(given.times.threads, 3);
}

TEST(RankPredict, UprightImagesAreOthersAndAreNotCounted) {
  const auto model = open_model(kRankedModel);
  PredictWork work{.model = *model, .paths = {kTurned}, .task = PredictTask::kLogits};
  const Predicted stored = predict(work);
  work.upright = true;
  const Predicted upright = predict(work);
  EXPECT_EQ(stored.not_turned, 1u);
  EXPECT_EQ(upright.not_turned, 0u);
  EXPECT_NE(stored.rows, upright.rows);
}

TEST(RankPredict, AStopNamesWhatIsDone) {
  const auto model = open_model(kRankedModel);
  const PredictWork work{.model = *model,
                         .paths = std::vector<std::string>(5, kRankedImages + "chelsea.png"),
                         .engine = {.batch = 2}};
  try {
    predict(work, 1);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kStopped);
    EXPECT_NE(error.message().find("2 of 5"), std::string::npos) << error.message();
  }
  EXPECT_EQ(predict(work, 3).batches.size(), 3u) << "a stop after the last image is none";
}

}  // namespace
}  // namespace vitrail
