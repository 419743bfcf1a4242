// Whole programs on a GPU: equal to the reference, replayed to the bit, in the memory that was planned.
#include "cuda_test.h"
#include "runtime/training_run.h"

namespace vitrail {
namespace {

class CudaExecutor : public CudaTest {};

// Head size 32 and 64 tokens, which tensor cores support.
VitConfig even_vit() {
  VitConfig c = tiny_vit(2);
  c.image_height = c.image_width = 64;
  c.width = 64, c.mlp = 128;
  return c;
}

StepSettings on_cuda(const PrecisionOptions& types, const RecomputeOptions& again = {}) {
  return {.backend = "cuda", .types = types, .again = again};
}

TEST_F(CudaExecutor, GradientsAgreeWithTheReferenceInDouble) {
  for (const VitConfig& config : {rich_vit(2), even_vit()}) {
    TrainingRun exact(
        config,
        {.backend = "ref", .record = {.batch = 3, .dtype = DType::kF64, .dropout = 0.1, .drop_path = 0.2}}),
        fast(config, on_cuda({}));
    exact.run();
    fast.run();
    expect_near_gradients(fast, exact);
  }
}

TEST_F(CudaExecutor, EveryNodeAgreesWithTheReference) {
  for (const VitConfig& config : {rich_vit(2), even_vit()})
    for (const PrecisionOptions& types : kTypes)
      for (bool fused : {false, true}) {
        StepSettings settings = on_cuda(types, {Recompute::kBlock});
        settings.fused = fused;
        TrainingRun run(config, settings);
        settings.backend = "ref";
        TrainingRun plain(config, settings);
        fill_inputs(run.rank, run.executor);
        EXPECT_NO_THROW(run.executor.run_checked(plain.store)) << label(settings);
      }
}

// fp8 is used beside 16-bit tensors, tf32 beside f32 ones.
TEST_F(CudaExecutor, RoundedGemmsAgreeWithTheReferenceAndReplay) {
  const StepSettings bf16 = on_cuda(kTypes[2], {Recompute::kBlock}), wide = on_cuda(kTypes[1]);
  for (StepSettings settings : {on_cuda({}), bf16, wide}) {
    settings.arithmetic = settings.types.compute == DType::kF32 ? Arithmetic::kTF32 : Arithmetic::kFp8;
    if (settings.arithmetic == Arithmetic::kFp8 && cuda_device().compute != 90) continue;
    for (bool fused : {false, true}) {
      settings.fused = fused;
      TrainingRun run(even_vit(), settings), one_by_one(even_vit(), settings), replayed(even_vit(), settings);
      StepSettings on_ref = settings;
      on_ref.backend = "ref";
      TrainingRun plain(even_vit(), on_ref);
      fill_inputs(run.rank, run.executor);
      EXPECT_NO_THROW(run.executor.run_checked(plain.store)) << label(settings);
      one_by_one.executor.time_nodes(true);
      for (int i = 0; i < 3; ++i) one_by_one.run(), replayed.run();
      expect_same(replayed.results(), one_by_one.results(), label(settings));
    }
  }
}

TEST_F(CudaExecutor, ACheckedRunNamesTheGradientThatDiffers) {
  TrainingRun run(rich_vit(1), on_cuda({})), other(rich_vit(1), {.backend = "ref"});
  other.store.view("grad/head.bias").as<float>()[1] += 0.5f;
  fill_inputs(run.rank, run.executor);
  try {
    run.executor.run_checked(other.store);
    FAIL() << "a sum that starts elsewhere went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheck);
    EXPECT_NE(std::string(error.what()).find("grad/head.bias"), std::string::npos) << error.what();
  }
}

TEST_F(CudaExecutor, ReplayingAndRecomputingChangeNoBit) {
  for (const VitConfig& config : {rich_vit(3), even_vit()})
    for (const PrecisionOptions& types : kTypes) {
      const auto three_runs = [&](const RecomputeOptions& again, bool one_by_one) {
        TrainingRun run(config, on_cuda(types, again));
        run.executor.time_nodes(one_by_one);
        for (int i = 0; i < 3; ++i) run.run();
        return run.results();
      };
      const auto wanted = three_runs({}, true);
      const std::string what = label(on_cuda(types));
      expect_same(three_runs({}, false), wanted, "replayed: " + what);
      expect_same(three_runs({}, false), wanted, "replayed in another arena: " + what);
      for (const RecomputeOptions& again : {RecomputeOptions{Recompute::kNorms},
                                            {Recompute::kCheap},
                                            {Recompute::kMlp},
                                            {Recompute::kBlock, 2}})
        expect_same(three_runs(again, false), wanted, "recomputed: " + what);
    }
}

TEST_F(CudaExecutor, TimesEveryNodeWhenAsked) {
  TrainingRun run(even_vit(), on_cuda({}));
  run.run();
  for (const NodeTime& time : run.executor.times()) EXPECT_EQ(time.runs, 0);
  run.executor.time_nodes(true);
  run.run();
  for (const NodeTime& time : run.executor.times()) {
    EXPECT_EQ(time.runs, 1);
    EXPECT_GE(time.seconds, 0);
  }
}

TEST_F(CudaExecutor, InputsStayWhereTheyWerePut) {
  TrainingRun once(rich_vit(2), on_cuda({})), again(rich_vit(2), on_cuda({}));
  ASSERT_GT(again.executor.staging_bytes(), 0u);
  for (int i = 0; i < 3; ++i) once.run();
  again.run();
  for (int i = 1; i < 3; ++i) again.executor.run();
  expect_same(again.results(), once.results(), "filled once");
}

size_t allocated() {
  size_t total = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) total += Buffer::allocated(static_cast<Category>(c));
  return total;
}

TEST_F(CudaExecutor, AllocatesExactlyWhatWasPlanned) {
  for (const PrecisionOptions& types : kTypes)
    for (const RecomputeOptions& again : {RecomputeOptions{}, {Recompute::kMlp}, {Recompute::kBlock}})
      for (int64_t batch : {1, 4}) {
        const size_t before = allocated();
        StepSettings settings = on_cuda(types, again);
        settings.record.batch = batch;
        TrainingRun run(rich_vit(2), settings);
        EXPECT_EQ(allocated() - before, run.plan.memory.peak_bytes());
        for (int i = 0; i < 3; ++i) run.run();
        EXPECT_EQ(allocated() - before, run.plan.memory.peak_bytes()) << "running allocates";
      }
}

}  // namespace
}  // namespace vitrail
