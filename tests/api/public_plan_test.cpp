// Plans through the public API: what is predicted is what a Model then holds.
#include <gtest/gtest.h>

#include "api/engine_fit.h"
#include "base/error.h"
#include "little_memory.h"
#include "models/vit_params.h"
#include "models/zoo.h"
#include "source_root.h"
#include "tensor/buffer.h"
#include "thrown.h"
#include "vitrail/model.h"
#include "vitrail/plan.h"

namespace vitrail {
namespace {

const std::string kPlannedModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";

uint64_t bytes_held() {
  uint64_t bytes = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes += Buffer::allocated(static_cast<Category>(c));
  return bytes;
}

TEST(PublicPlan, PredictsTheBytesOfAModel) {
  for (const int64_t batch : {1, 7, 64})
    for (const char* dtype : {"f32", "bf16", "int8"}) {
      const ModelOptions options{.dtype = dtype, .batch = batch};
      const Plan plan = plan_inference(kPlannedModel, options);
      const uint64_t before = bytes_held();
      const Model model = Model::load(kPlannedModel, options);
      EXPECT_EQ(bytes_held() - before, plan.peak_bytes) << dtype << " batch " << batch;
      uint64_t sum = 0;
      for (const MemoryItem& item : plan.memory) sum += item.bytes;
      EXPECT_EQ(sum, plan.peak_bytes);
      EXPECT_TRUE(plan.fits);
      EXPECT_GE(plan.largest_batch, batch);
      EXPECT_FALSE(plan.seconds) << "nobody measured this machine";
    }
}

// Of two processes the one that may take less memory is told the smaller batch.
TEST(PublicPlan, TheLargestBatchFitsWhatIsLeftToTheProcess) {
  if (!has_room_of_its_own()) GTEST_SKIP();
  const auto plan_with_little = [] {
    leave_memory(size_t{256} << 20);
    const char* model = "vit_tiny_patch16_224";
    const Plan plan = plan_inference(model, {.threads = 1});
    const Plan most = plan_inference(model, {.threads = 1, .batch = plan.largest_batch});
    std::fprintf(stderr, "%s", most.peak_bytes <= size_t{256} << 20 ? "fits" : "too much");
    std::_Exit(0);
  };
  EXPECT_EXIT(plan_with_little(), testing::ExitedWithCode(0), "^fits");
}

// A Model holds several programs, of which the largest decides.
TEST(FittingBatch, IsTheLargestWithWhichEveryProgramFits) {
  const VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  const EngineOptions plain{.threads = 1}, watched{.threads = 1, .attention = true};
  const DeviceInfo device = engine_device(plain);
  const size_t bytes = largest_plan(config, {watched}, 20, device).memory.peak_bytes();
  EXPECT_EQ(largest_plan(config, {watched, plain}, 20, device).memory.peak_bytes(), bytes);
  const auto fits = [&](const std::vector<EngineOptions>& programs) {
    return fitting_batch(config, programs, device, bytes);
  };
  EXPECT_GT(fits({plain}), 20);
  EXPECT_EQ(fits({watched}), 20);
  EXPECT_EQ(fits({plain, watched}), 20);
  EXPECT_EQ(fitting_batch(config, {plain}, device, 1), 0);
}

TEST(PublicPlan, KnowsDevicesThatAreNotHere) {
  const ModelOptions options{.dtype = "bf16", .batch = 256};
  const Plan plan = plan_inference("vit_large_patch16_224", options, "h200");
  EXPECT_NE(plan.device.find("H200"), std::string::npos) << plan.device;
  ASSERT_TRUE(plan.seconds);
  EXPECT_GT(*plan.seconds, 0);
  EXPECT_LT(*plan.seconds, 1);
  EXPECT_GT(plan.parameters, 300'000'000);
  EXPECT_TRUE(plan.fits);
  EXPECT_FALSE(plan_inference("vit_large_patch16_224", {.dtype = "bf16", .batch = 65536}, "h200").fits);
}

// An architecture by name takes the sides that are asked for, and those that no patch fits into are refused.
TEST(PublicPlan, ArchitecturesTakeAnySides) {
  const auto planned = [](int64_t height, int64_t width) {
    return plan_inference("vit_tiny_patch16_224", {.image_height = height, .image_width = width}).parameters;
  };
  const auto sized = [](int64_t height, int64_t width) {
    VitConfig config = find_architecture("vit_tiny_patch16_224").config;
    config.image_height = height, config.image_width = width;
    return count_params(config);
  };
  EXPECT_EQ(planned(0, 0), sized(224, 224)) << "as it was published";
  EXPECT_EQ(planned(16, 48), sized(16, 48));
  EXPECT_EQ(planned(48, 16), sized(48, 16));
  EXPECT_NE(sized(16, 48), sized(224, 224));
  EXPECT_EQ(plan_inference("vit_tiny_patch16_224", {.image_size = 64}).parameters, sized(64, 64));
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 16}, {16, 1}, {1, 1}, {15, 16}}) {
    const std::string said = thrown_by([&, height = height, width = width] { planned(height, width); });
    EXPECT_TRUE(said.starts_with("config: ")) << said;
    EXPECT_NE(said.find("is larger than"), std::string::npos) << said;
  }
}

TEST(PublicPlan, RefusesWhatIsNotThere) {
  const auto kind_of = [](auto&&... arguments) {
    try {
      plan_inference(arguments...);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind_of("no_such_vit"), ErrorKind::kUsage);
  EXPECT_EQ(kind_of("/no/such/folder"), ErrorKind::kData);
  EXPECT_EQ(kind_of(kPlannedModel, ModelOptions{}, "no_such_device"), ErrorKind::kData);
  EXPECT_EQ(kind_of(kPlannedModel, ModelOptions{.device = "cuda"}, "h200"), ErrorKind::kUsage);
  EXPECT_EQ(kind_of(kPlannedModel, ModelOptions{.batch = 0}), ErrorKind::kUsage);
  EXPECT_EQ(kind_of(kPlannedModel, ModelOptions{.threads = -7}), ErrorKind::kUsage);
  EXPECT_EQ(kind_of(kPlannedModel, ModelOptions{.dtype = "f12"}), ErrorKind::kUsage);
}

}  // namespace
}  // namespace vitrail
