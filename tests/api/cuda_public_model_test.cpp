// The public API on a GPU: engines of several batch sizes and outputs take turns in one arena, each with a
// recording of its own, from several threads.
#include <cmath>
#include <thread>

#include "cuda_test.h"
#include "source_root.h"
#include "vitrail/model.h"

namespace vitrail {
namespace {

const std::string kModelOnGpu = VT_SOURCE_DIR "/models/deit_tiny_patch16_224";
const std::string kImagesOnGpu = VT_SOURCE_DIR "/examples/images/";

class CudaPublicModel : public CudaTest {};

std::vector<ImageView> images() {
  std::vector<ImageView> views;
  for (const char* name : {"astronaut.png", "chelsea.png", "coffee.png", "raccoon.png", "rocket.jpg"})
    views.push_back(ImageView::file(kImagesOnGpu + name));
  return views;
}

// GEMMs of other batch sizes may be other algorithms: the answers are near, and the same every time.
TEST_F(CudaPublicModel, EnginesOfSeveralBatchesAndOutputsTakeTurns) {
  const Model model = Model::load(kModelOnGpu, {.device = "cuda", .batch = 4}),
              cpu = Model::load(kModelOnGpu);
  const std::vector<ImageView> views = images();
  const RowsOfFloats wanted = cpu.logits(views), features = cpu.embed(views);
  for (int round = 0; round < 3; ++round) {
    const RowsOfFloats found = model.logits(views), embedded = model.embed(views);
    ASSERT_EQ(found.values.size(), wanted.values.size());
    for (size_t i = 0; i < wanted.values.size(); ++i)
      ASSERT_NEAR(found.values[i], wanted.values[i], 2e-4) << i;
    for (size_t i = 0; i < features.values.size(); ++i)
      ASSERT_NEAR(embedded.values[i], features.values[i], 2e-4) << i;
    EXPECT_EQ(model.classify(views[2], 1)[0].label, "espresso");
    EXPECT_EQ(model.attention(views[1]).size(), 1u);
  }
}

TEST_F(CudaPublicModel, SeveralThreadsUseOneModel) {
  const Model model = Model::load(kModelOnGpu, {.device = "cuda", .dtype = "bf16", .batch = 4});
  const std::vector<ImageView> views = images();
  const std::vector<float> wanted = model.logits(views).values;
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (int& mine : wrong)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        mine += model.logits(views).values != wanted;
        mine += model.classify(views[2], 1)[0].label != "espresso";
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace vitrail
