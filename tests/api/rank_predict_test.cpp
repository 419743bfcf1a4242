// A prediction of a list of files below the commands: rows in the order of the list, failures in their
// places, and a stop that names what is done.
#include "api/rank_predict.h"

#include <gtest/gtest.h>

#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

const std::string kRankedModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
const std::string kRankedImages = VT_SOURCE_DIR "/examples/images/";
const std::string kTurned = VT_SOURCE_DIR "/tests/golden/images/exif6.jpg";

struct Heard {
  std::vector<size_t> order, failed, batches;
  std::vector<std::vector<float>> rows;
  std::vector<std::string> details;
  PredictTimes times;
  size_t not_turned = 0;
};

Heard predict(const PredictWork& work, size_t stop_after = SIZE_MAX) {
  Heard heard;
  const InferenceRank alone;
  PredictRank rank(work, alone, [&](const std::string& line) { heard.details.push_back(line); });
  heard.times = rank.run({.row =
                              [&](const ImageRow& row) {
                                heard.order.push_back(row.index);
                                if (row.error) heard.failed.push_back(row.index);
                                heard.rows.emplace_back(row.values.begin(), row.values.end());
                              },
                          .batch_done = [&](size_t images) { heard.batches.push_back(images); },
                          .stop = [&] { return heard.batches.size() >= stop_after; }});
  heard.not_turned = rank.not_turned();
  return heard;
}

TEST(RankPredict, GivesEveryImageARowInTheOrderOfTheList) {
  const TempFolder folder;
  const auto model = open_model(kRankedModel);
  const std::vector<std::string> paths = {kRankedImages + "chelsea.png", folder.file("bad.png", "no image"),
                                          kRankedImages + "rocket.jpg", kTurned,
                                          kRankedImages + "chelsea.png"};
  const Heard heard =
      predict({.model = *model, .paths = paths, .task = PredictTask::kLogits, .engine = {.batch = 2}});
  EXPECT_EQ(heard.order, (std::vector<size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(heard.failed, std::vector<size_t>{1});
  EXPECT_EQ(heard.batches, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(heard.not_turned, 1u);
  EXPECT_EQ(heard.times.images, paths.size());
  EXPECT_EQ(heard.times.batch, 2);
  ASSERT_EQ(heard.rows[0].size(), 5u);
  EXPECT_EQ(heard.rows[4], heard.rows[0]);
  EXPECT_NE(heard.rows[2], heard.rows[0]);
  ASSERT_FALSE(heard.details.empty());
  EXPECT_EQ(heard.details.front().rfind("running on ", 0), 0u) << heard.details.front();
}

TEST(RankPredict, UprightImagesAreOthersAndAreNotCounted) {
  const auto model = open_model(kRankedModel);
  PredictWork work{.model = *model, .paths = {kTurned}, .task = PredictTask::kLogits};
  const Heard stored = predict(work);
  work.upright = true;
  const Heard upright = predict(work);
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
