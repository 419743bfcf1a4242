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

}  // namespace
}  // namespace vitrail
