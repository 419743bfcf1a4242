// The predictor below the public API, which gives it no more images at once than a batch takes.
#include "api/predictor.h"

#include <gtest/gtest.h>

#include "golden_cases.h"
#include "source_root.h"

namespace vitrail {
namespace {

const std::string kModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";

TEST(Predictor, MoreImagesThanABatchTakesComeInTurns) {
  const auto model = open_model(kModel);
  const std::vector<float> images = golden::images(model->card().config, 5);
  for (const PredictTask task : {PredictTask::kLogits, PredictTask::kEmbed}) {
    Predictor one(*model, {.batch = 1}, {task}), two(*model, {.batch = 2}, {task});
    std::vector<float> wanted;
    for (size_t i = 0; i < 5; ++i) {
      const auto row = one.run(task, std::span(images).subspan(i * one.image_elems(), one.image_elems()), 1);
      wanted.insert(wanted.end(), row.begin(), row.end());
    }
    EXPECT_EQ(two.run(task, images, 5), wanted);
  }
}

// Seconds only grow, whichever batch took longer.
TEST(Predictor, TheSecondsOfEveryBatchAreCounted) {
  const auto model = open_model(kModel);
  const std::vector<float> image = golden::images(model->card().config, 1);
  Predictor predictor(*model, {.batch = 1}, {PredictTask::kLogits});
  for (int batch = 0; batch < 50; ++batch) {
    const double before = predictor.compute_seconds();
    predictor.run(PredictTask::kLogits, image, 1);
    ASSERT_GT(predictor.compute_seconds(), before) << batch;
  }
}

// A batch of which nothing could be read is not computed; of one image that was, all rows are.
TEST(Predictor, WhatCouldNotBeReadIsNotComputed) {
  const auto model = open_model(kModel);
  Predictor predictor(*model, {.batch = 2}, {PredictTask::kLogits});
  const std::vector<std::string> paths = {"a.png", "b.png", "c.png", "d.png"};
  const std::vector<float> pixels = golden::images(model->card().config, 2);
  const auto failed = [](size_t index) { return std::pair(index, Error(ErrorKind::kData, "cut off")); };
  std::vector<float> rows;
  const auto none = predictor.run(PredictTask::kLogits,
                                  {.first = 2,
                                   .count = 2,
                                   .of_all = 2,
                                   .pixels = pixels,
                                   .failures = {failed(2), failed(3)},
                                   .notes = {}},
                                  paths, Remainder::kSmaller, rows);
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(predictor.compute_seconds(), 0);
  ASSERT_EQ(none.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(none[i].index, 2 + i);
    EXPECT_TRUE(none[i].values.empty());
    ASSERT_TRUE(none[i].error);
    EXPECT_EQ(none[i].error->message(), "cut off");
  }
  const auto one = predictor.run(
      PredictTask::kLogits,
      {.first = 0, .count = 2, .of_all = 2, .pixels = pixels, .failures = {failed(0)}, .notes = {}}, paths,
      Remainder::kSmaller, rows);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_TRUE(one[0].error);
  EXPECT_TRUE(one[0].values.empty());
  EXPECT_FALSE(one[1].error);
  EXPECT_EQ(one[1].values.size(), 5u);
  EXPECT_EQ(rows.size(), 10u);
  EXPECT_GT(predictor.compute_seconds(), 0);
  EXPECT_TRUE(predictor.run(PredictTask::kLogits, ImageBatch{}, paths, Remainder::kSmaller, rows).empty());
}

}  // namespace
}  // namespace vitrail
