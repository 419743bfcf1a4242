#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/kernels.h"
#include "models/vit.h"
#include "models/vit_init.h"
#include "passes/pipeline.h"

namespace vitrail {
namespace {

VitConfig config(int64_t width, int64_t image) {
  VitConfig c;
  c.image_height = image;
  c.image_width = image + 8;
  c.patch = 8;
  c.width = width;
  c.depth = 2;
  c.heads = 4;
  c.mlp = 3 * width + 5;
  c.classes = 11;
  c.layer_scale = true;
  return c;
}

void fill(const std::string& name, const Shape& shape, std::span<float> target) {
  fill_by_rule({name, shape}, target);
}

struct VitRun {
  ExecutionPlan plan;
  RankContext rank;
  PersistentStore params;
  Executor executor;

  VitRun(const VitConfig& c, int64_t batch, bool fused, const char* backend, int threads,
         DType dtype = DType::kF32)
      : plan(make_plan(c, batch, fused, backend, threads, dtype)),
        rank(plan.device),
        params(plan, rank),
        executor(plan, params, rank) {
    params.load(plan, fill);
  }
  static ExecutionPlan make_plan(const VitConfig& c, int64_t batch, bool fused, const char* backend,
                                 int threads, DType dtype) {
    Program program = inference_program(record_vit(c, {.batch = batch, .dtype = dtype}), {.fuse = fused});
    return plan_execution(std::move(program), find_backend(backend), cpu_device(threads));
  }
  void fill_images() {
    const TensorView images = executor.input("images");
    std::vector<float> values(static_cast<size_t>(images.desc().elems()));
    fill_by_rule({"input", images.shape()}, values);
    convert_floats(values.data(), DType::kF32, images.data(), images.dtype(), values.size());
  }
  std::vector<double> logits() {
    fill_images();
    executor.run();
    const TensorView out = executor.output("logits");
    std::vector<double> values(static_cast<size_t>(out.desc().elems()));
    convert_floats(out.data(), out.dtype(), values.data(), DType::kF64, values.size());
    return values;
  }
};

TEST(Executor, AllocatesExactlyWhatWasPlanned) {
  for (int64_t width : {16, 48})
    for (int64_t image : {16, 40})
      for (int64_t batch : {1, 2, 5})
        for (const char* backend : {"ref", "cpu"})
          for (int threads : {1, 3}) {
            const size_t before =
                Buffer::allocated(Category::kParameters) + Buffer::allocated(Category::kTransient);
            VitRun run(config(width, image), batch, true, backend, threads);
            const size_t held =
                Buffer::allocated(Category::kParameters) + Buffer::allocated(Category::kTransient) - before;
            EXPECT_EQ(held, run.plan.memory.peak_bytes());
            EXPECT_EQ(run.params.bytes(), run.plan.memory.persistent_bytes);
            EXPECT_EQ(run.executor.transient_bytes(), run.plan.memory.transient_bytes);
            EXPECT_EQ(Buffer::allocated(Category::kStaging), 0u) << "loading left its staging buffer behind";
          }
}

TEST(Executor, FusedAndPlainProgramsAgree) {
  const VitConfig c = config(48, 40);
  const std::vector<double> exact = VitRun(c, 2, false, "ref", 2, DType::kF64).logits();
  EXPECT_EQ(VitRun(c, 2, true, "ref", 2, DType::kF64).logits(), exact)
      << "members one by one are the same loops";
  for (bool fused : {false, true}) {
    const std::vector<double> fast = VitRun(c, 2, fused, "cpu", 2).logits();
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(fast[i], exact[i], 1e-5);
  }
}

TEST(Executor, ResultsDoNotDependOnThreadsOrRepetition) {
  const VitConfig c = config(48, 64);
  VitRun one(c, 3, true, "cpu", 1);
  const std::vector<double> first = one.logits();
  EXPECT_EQ(one.logits(), first) << "a second run differs";
  for (int threads : {2, 3, 8})
    EXPECT_EQ(VitRun(c, 3, true, "cpu", threads).logits(), first) << threads << " threads";
}

TEST(Executor, TimesEveryNode) {
  VitRun run(config(16, 16), 1, true, "cpu", 1);
  run.logits();
  run.logits();
  for (const NodeTime& time : run.executor.times()) {
    EXPECT_EQ(time.runs, 2);
    EXPECT_GE(time.seconds, 0);
  }
  run.executor.reset_times();
  EXPECT_EQ(run.executor.times()[0].runs, 0);
}

// Were it the last run's time alone, some node would have taken less in one run than in the one before.
TEST(Executor, TimesOfRunsAddUp) {
  VitRun run(config(16, 40), 2, true, "cpu", 1);
  std::vector<double> before(run.executor.times().size());
  for (int repetition = 0; repetition < 8; ++repetition) {
    run.logits();
    for (size_t node = 0; node < before.size(); ++node) {
      EXPECT_GE(run.executor.times()[node].seconds, before[node]) << node << " in run " << repetition;
      before[node] = run.executor.times()[node].seconds;
    }
  }
}

TEST(Executor, CheckedRunFindsTheNodeThatDiffers) {
  const VitConfig c = config(32, 24);
  VitRun fast(c, 1, true, "cpu", 2), plain(c, 1, true, "ref", 2);
  fast.fill_images();
  EXPECT_NO_THROW(fast.executor.run_checked(plain.params));
  // Reference parameters that differ in one weight must be detected, at that node.
  plain.params.load(plain.plan, [](const std::string& name, const Shape& shape, std::span<float> target) {
    fill(name, shape, target);
    if (name == "blocks.1.attn.proj.bias") target[3] += 0.01f;
  });
  fast.fill_images();
  try {
    fast.executor.run_checked(plain.params);
    FAIL() << "a difference of 0.01 went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheck);
    EXPECT_NE(std::string(error.what()).find("blocks.1.attn.proj"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("vit.cpp"), std::string::npos) << error.what();
  }
}

// What is free changes while the test runs, but not by half.
TEST(RankContext, RanksOfAHostShareItsMemory) {
  RankContext rank{DeviceInfo()};
  const double alone = static_cast<double>(rank.available().bytes);
  rank.sharing = 4;
  EXPECT_LT(static_cast<double>(rank.available().bytes), 0.5 * alone);
  EXPECT_GT(static_cast<double>(rank.available().bytes), 0.1 * alone);
  EXPECT_TRUE(rank.available().where.starts_with("the share of one of 4 ranks in what is "))
      << rank.available().where;
}

}  // namespace
}  // namespace vitrail
