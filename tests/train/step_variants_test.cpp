// What must not change a step, and how much other things may: recomputing, threads, loss scale, accumulation,
// precision; and a step whose numbers overflow.
#include <gtest/gtest.h>

#include <limits>

#include "case_run.h"
#include "io/safetensors.h"
#include "train/helpers/tiny_run.h"
#include "train/train_state.h"

namespace vitrail {
namespace {

using golden::CaseRun;
using golden::StepCase;

constexpr int64_t kSteps = 3;

struct Outcome {
  std::vector<double> losses;
  std::vector<std::vector<double>> weights;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const StepCase& c, const Backend& backend, int threads = 1) {
  CaseRun run(c, backend, cpu_device(threads));
  Outcome result{.losses = run.run(kSteps)};
  for (const TrainedParam& p : c.config.trained) result.weights.push_back(run.value(p.name));
  return result;
}

double largest_difference(const Outcome& a, const Outcome& b) {
  double top = 0;
  for (size_t i = 0; i < a.weights.size(); ++i)
    for (size_t k = 0; k < a.weights[i].size(); ++k)
      top = std::max(top, std::abs(a.weights[i][k] - b.weights[i][k]));
  return top;
}

// The moments are stored in another type.
TEST(StepVariants, TheStateOfAnotherStepIsRefused) {
  const testing::WorkFolder work;
  StepCase c = golden::load_step_case("adamw_everything", DType::kF32);
  {
    CaseRun run(c, ref_backend());
    write_safetensors(work / "state", state_tensors(run.whole()), {});
    EXPECT_NO_THROW(restore_state(*open_tensors(work / "state"), run.store()));
  }
  MomentDType& moments = c.config.optim.moment_dtype;
  moments = moments == MomentDType::kBF16 ? MomentDType::kMaster : MomentDType::kBF16;
  CaseRun into(c, ref_backend());
  try {
    restore_state(*open_tensors(work / "state"), into.store());
    FAIL() << "read into something else";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
    EXPECT_NE(error.message().find("another shape or type"), std::string::npos) << error.what();
  }
}

TEST(StepVariants, RecomputingChangesNoBit) {
  for (const char* name : {"adamw_everything", "adamw_distilled"}) {
    StepCase c = golden::load_step_case(name, DType::kF32);
    const Outcome kept = outcome(c, cpu_backend());
    for (const RecomputeOptions& options :
         {RecomputeOptions{Recompute::kMlp, 1}, {Recompute::kBlock, 1}, {Recompute::kBlock, 2}}) {
      c.config.recompute = options;
      EXPECT_TRUE(outcome(c, cpu_backend()) == kept)
          << name << " " << enum_name(options.level) << " " << options.every;
    }
  }
}

TEST(StepVariants, ThreadsChangeNoBit) {
  const StepCase c = golden::load_step_case("adamw_all", DType::kF32);
  const Outcome one = outcome(c, cpu_backend());
  for (int threads : {2, 3}) EXPECT_TRUE(outcome(c, cpu_backend(), threads) == one) << threads;
}

// A power of two only moves exponents.
TEST(StepVariants, LossScaleCancelsOut) {
  for (const char* name : {"adamw_all", "sgd_momentum", "lamb"}) {
    StepCase c = golden::load_step_case(name, DType::kF64);
    const Outcome plain = outcome(c, ref_backend());
    c.config.loss_scale.initial = 1024;
    EXPECT_LE(largest_difference(outcome(c, ref_backend()), plain), 1e-15) << name;
  }
}

TEST(StepVariants, AccumulationGivesTheGradientOfTheWholeBatch) {
  StepCase c = golden::load_step_case("adamw_all", DType::kF64);
  const Outcome four = outcome(c, ref_backend());
  c.config.micro_batch = c.batch;
  EXPECT_LE(largest_difference(outcome(c, ref_backend()), four), 1e-10);
}

TEST(StepVariants, LowPrecisionFollowsTheLoss) {
  for (const char* name : {"adamw_all", "adamw_everything", "sgd_momentum"})
    for (DType compute : {DType::kBF16, DType::kF16}) {
      StepCase c = golden::load_step_case(name, DType::kF32);
      c.config.precision.compute = compute;
      if (compute == DType::kF16) c.config.loss_scale = {.dynamic = true, .initial = 1024};
      CaseRun run(c, cpu_backend());
      const auto found = run.run(c.steps), wanted = c.numbers("losses");
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], 0.01 * wanted[i])
            << name << " " << to_string(compute) << " step " << i;
    }
}

TEST(StepVariants, AStepThatOverflowsIsSkippedAndTheNextOneCounts) {
  for (const char* name : {"adamw_all", "sgd_momentum", "lamb", "lion"}) {
    StepCase c = golden::load_step_case(name, DType::kF32);
    c.config.loss_scale = {.dynamic = true, .initial = 64};
    CaseRun run(c, cpu_backend());
    run.run(2);
    const std::string weight = "blocks.0.attn.qkv.weight";
    const std::vector<double> before = run.value(weight);
    const float kept = run.data().images[0];
    run.data().images[0] = std::numeric_limits<float>::infinity();
    run.gradients(0);
    EXPECT_EQ(run.update(0).skip, 1) << name;
    EXPECT_EQ(run.value(weight), before) << name;
    EXPECT_EQ(run.value(kLossScaleState)[0], 32);
    run.data().images[0] = kept;
    run.gradients(2);
    const StepValues next = run.update(2);
    EXPECT_EQ(next.skip, 0);
    EXPECT_EQ(next.step, 3);
    EXPECT_NE(run.value(weight), before);
  }
}

}  // namespace
}  // namespace vitrail
