// Training with a teacher: a student learns from it, in the types of the run, and of the same classes alone.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "train/helpers/trained_model.h"
#include "train/run_setup.h"
#include "train/teacher.h"

namespace vitrail::testing {
namespace {

TEST(FineTune, AStudentLearnsFromItsTeacher) {
  for (DistillKind kind : {DistillKind::kSoft, DistillKind::kHard})
    for (bool token : {false, true}) {
      const WorkFolder work;
      TrainConfig config = tiny_config(100);
      config.data.train = "synthetic:3x8x8x4x400";
      config.train.batch = 16;
      config.optim.lr = 0.005;
      config.distill = {kind, trained_model(), 1, 2};  // the teacher alone
      set_model(config, "distilled", [&](VitConfig& m) { m.distilled = token; });
      const Ran ran = train(config, work / "run");
      EXPECT_LT(ran.steps.back().loss, 0.5 * ran.steps.front().loss) << enum_name(kind) << token;
      if (!token) {
        EXPECT_GE(ran.outcome.best, 0.9) << enum_name(kind);
      }
    }
}

TEST(FineTune, ATeacherComputesInTheRunsTypes) {
  TrainConfig config = tiny_config(1);
  config.distill = {DistillKind::kSoft, trained_model(), 0.5, 2};
  const RunSetup setup = set_up(config);
  std::vector<float> images(8 * 3 * 8 * 8);
  for (size_t i = 0; i < images.size(); ++i) images[i] = counter_uniform(name_key("images"), i);
  RankContext rank(cpu_device(1));
  const auto answers = [&](DType compute, size_t* param_bytes) {
    Teacher teacher(config.distill, setup.model->card, 8, {.compute = compute, .residual = DType::kF32},
                    cpu_backend(), rank.device);
    teacher.start(rank);
    *param_bytes = teacher.memory().by_category[static_cast<size_t>(Category::kParameters)];
    const auto targets = teacher.targets(images);
    return std::vector<float>(targets.begin(), targets.end());
  };
  size_t full_bytes = 0, low_bytes = 0;
  const std::vector<float> full = answers(DType::kF32, &full_bytes), low = answers(DType::kBF16, &low_bytes);
  EXPECT_NE(full, low);
  for (size_t i = 0; i < full.size(); ++i) EXPECT_NEAR(full[i], low[i], 0.02) << i;
  EXPECT_LT(low_bytes, 0.7 * static_cast<double>(full_bytes));
}

TEST(FineTune, ATeacherMustKnowTheSameClasses) {
  const WorkFolder work;
  TrainConfig config = tiny_config(1);
  config.data.train = "synthetic:3x8x8x5x40";
  config.distill = {DistillKind::kSoft, trained_model(), 0.5, 2};
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.message().find("4 classes"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace vitrail::testing
