// Plans of training through the public API: mistakes, figures, and what train() with the same options holds.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include "error_of.h"
#include "temp_folder.h"
#include "tensor/buffer.h"

namespace vitrail {
namespace {

// Eight updates on synthetic images.
const std::string kPlannedRun = R"({
  "model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 1, "heads": 2, "mlp": 64},
  "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
  "train": {"batch": 16, "steps": 8, "tensorboard": false}
})";

uint64_t held() {
  uint64_t bytes = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes += Buffer::allocated(static_cast<Category>(c));
  return bytes;
}

TEST(PublicTrainPlan, OfWhatCannotBe) {
  const auto kind = [](const std::string& config, const std::string& device = "cpu",
                       const std::string& target = "") {
    return error_of([&] { plan_training(config, {.device = device}, target); }).kind();
  };
  EXPECT_EQ(kind(""), ErrorKind::kUsage);
  EXPECT_EQ(kind(" \n\t"), ErrorKind::kUsage);
  EXPECT_EQ(kind("/no/such.json"), ErrorKind::kConfig);
  EXPECT_EQ(kind(std::string("/no\0such", 8)), ErrorKind::kConfig);
  EXPECT_EQ(kind("{"), ErrorKind::kConfig);
  EXPECT_EQ(kind(R"({"train": 3})"), ErrorKind::kConfig);
  EXPECT_EQ(kind("{" + std::string(2 << 20, ' ') + "}"), ErrorKind::kConfig) << "more than a config may have";
  EXPECT_EQ(kind(R"({"train": {"bach": 3}})"), ErrorKind::kConfig);
  EXPECT_EQ(kind(R"({"train": {"batch": -3}})"), ErrorKind::kConfig);
  EXPECT_EQ(kind(R"({"train": {"batch": 9223372036854775807}})"), ErrorKind::kConfig);
  EXPECT_EQ(kind(R"({"train": {"micro_batch": 4611686018427387904, "accumulation": 4}})"),
            ErrorKind::kConfig);
  EXPECT_EQ(kind(R"({"model": {"heads": 0}})"), ErrorKind::kConfig);
  EXPECT_EQ(kind(kPlannedRun, ""), ErrorKind::kUsage);
  EXPECT_EQ(kind(kPlannedRun, "tpu"), ErrorKind::kUsage);
  EXPECT_EQ(kind(kPlannedRun, "cuda:-1"), ErrorKind::kUsage);
  EXPECT_EQ(kind(kPlannedRun, "cpu", "no_such_device"), ErrorKind::kData);
  EXPECT_EQ(kind(kPlannedRun, "cpu", "/no/such.json"), ErrorKind::kData);
  EXPECT_EQ(kind(kPlannedRun, "cuda", "h200"), ErrorKind::kUsage) << "two devices";
}

TEST(PublicTrainPlan, IsMadeFirst) {
  const Plan plan = plan_training(kPlannedRun);
  EXPECT_EQ(plan_training("{ // as in a file" + kPlannedRun.substr(1)).peak_bytes, plan.peak_bytes);
  EXPECT_EQ(plan.batch, 16);
  EXPECT_GE(plan.largest_batch, 16);
  EXPECT_TRUE(plan.fits);
  uint64_t sum = 0;
  for (const auto& item : plan.memory) sum += item.bytes;
  EXPECT_EQ(sum, plan.peak_bytes);
  const Plan there = plan_training(kPlannedRun, {}, "h200");
  ASSERT_TRUE(there.seconds);
  EXPECT_GT(*there.seconds, 0);
}

// What train() with the same options holds of the buffers that the plan counts.
TEST(PublicTrainPlan, OfRanksIsThatOfEach) {
  const Plan alone = plan_training(kPlannedRun, {.threads = 1});
  const Plan shared = plan_training(kPlannedRun, {.threads = 1, .ranks = 2});
  EXPECT_EQ(2 * shared.batch, alone.batch);
  EXPECT_EQ(shared.parameters, alone.parameters);
  EXPECT_LT(shared.peak_bytes, alone.peak_bytes) << "each has half of the images";
  EXPECT_GT(2 * shared.peak_bytes, alone.peak_bytes) << "but all of the parameters";
  EXPECT_NEAR(static_cast<double>(shared.available_bytes) / static_cast<double>(alone.available_bytes), 0.5,
              0.1);
  EXPECT_LE(shared.flops, 0.6 * alone.flops);
  const TempFolder folder;
  for (const int ranks : {1, 2}) {
    const uint64_t before = held();
    uint64_t most = 0;
    TrainCallbacks callbacks;
    callbacks.on_step = [&](const StepReport&) { most = std::max(most, held() - before); };
    train(kPlannedRun,
          {.folder = (folder.path() / std::to_string(ranks)).string(), .threads = 1, .ranks = ranks},
          callbacks);
    const uint64_t planned = static_cast<uint64_t>(ranks) * (ranks == 1 ? alone : shared).peak_bytes;
    EXPECT_LE(most, planned) << ranks;
    EXPECT_GT(most, planned / 2) << ranks;
  }
  EXPECT_NE(plan_training(kPlannedRun, {.threads = 2}).device, alone.device) << "threads are planned for";
}

TEST(PublicTrainPlan, TellsOfRanksThatCannotBe) {
  const auto told = [](const TrainOptions& options) {
    return error_of([&] { plan_training(kPlannedRun, options); });
  };
  EXPECT_EQ(told({.ranks = 0}).message(), "ranks is 0: expected 1 to 256");
  EXPECT_EQ(told({.ranks = 257}).kind(), ErrorKind::kUsage);
  EXPECT_EQ(told({.threads = -1}).message(), "threads is -1: expected 0 to 4096");
  EXPECT_EQ(told({.ranks = 17}).kind(), ErrorKind::kConfig) << "sixteen images are too few";
}

// Two heads are shared by no four ranks.
TEST(PublicTrainPlan, ProposesMeshesThatCutTheHeads) {
  const std::string meshed = R"({"mesh": {"tp": 8}, )" + kPlannedRun.substr(1);
  EXPECT_EQ(error_of([&] { plan_training(meshed, {.ranks = 4}); }).hint(),
            "mesh.dp=2 mesh.tp=2 mesh.sp=1, or mesh.dp=4 mesh.tp=1 mesh.sp=1, or mesh.dp=2 mesh.tp=1 "
            "mesh.sp=2");
}

}  // namespace
}  // namespace vitrail
