// Whole training steps on the backends: what passes and plans guarantee, checked in the bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/update/sgd.h"
#include "training_run.h"

namespace vitrail {
namespace {

TEST(TrainingStep, RecomputeGivesTheSameBits) {
  for (const char* backend : {"ref", "cpu"})
    for (bool fused : {false, true})
      for (const PrecisionOptions& types : kTypes) {
        StepSettings settings{.backend = backend, .fused = fused, .types = types};
        const auto wanted = run_step(rich_vit(3), settings);
        for (const RecomputeOptions& again : {RecomputeOptions{Recompute::kNorms},
                                              {Recompute::kCheap},
                                              {Recompute::kMlp},
                                              {Recompute::kBlock},
                                              {Recompute::kBlock, 2}}) {
          settings.again = again;
          expect_same(run_step(rich_vit(3), settings), wanted, label(settings));
        }
      }
}

TEST(TrainingStep, ThreadsDoNotChangeABit) {
  for (const PrecisionOptions& types : kTypes) {
    StepSettings settings{.threads = 1, .types = types};
    const auto wanted = run_step(rich_vit(2), settings);
    for (int threads : {2, 3, 8}) {
      settings.threads = threads;
      expect_same(run_step(rich_vit(2), settings), wanted, std::to_string(threads) + " threads");
    }
  }
}

TEST(TrainingStep, FusingOnTheReferenceChangesNoBit) {
  for (const PrecisionOptions& types : kTypes) {
    StepSettings settings{.backend = "ref", .fused = false, .types = types};
    const auto wanted = run_step(rich_vit(2), settings);
    settings.fused = true;
    expect_same(run_step(rich_vit(2), settings), wanted, label(settings));
  }
}

// A norm's gradient with the residual's added equals the sum by a node of its own; in f32 the reference,
// which computes in f64, leaves out a rounding.
TEST(TrainingStep, JoiningResidualsChangesNoBit) {
  for (const auto& [backend, dtype] : {std::pair{"ref", DType::kF64}, {"cpu", DType::kF32}})
    for (const RecomputeOptions& again : {RecomputeOptions{}, {Recompute::kBlock}}) {
      StepSettings settings{.backend = backend, .joined = false, .again = again};
      settings.record.dtype = dtype;
      const auto wanted = run_step(rich_vit(3), settings);
      settings.joined = true;
      expect_same(run_step(rich_vit(3), settings), wanted, label(settings));
    }
}

TEST(TrainingStep, TheCpuAgreesWithTheReferenceInDouble) {
  const VitConfig config = rich_vit(2);
  TrainingRun exact(config, {.backend = "ref",
                             .record = {.batch = 3, .dtype = DType::kF64, .dropout = 0.1, .drop_path = 0.2}}),
      fast(config, {});
  exact.run();
  fast.run();
  expect_near_gradients(fast, exact);
}

TEST(TrainingStep, SumsAddUpInPlaceAndParametersStay) {
  for (const char* backend : {"ref", "cpu"}) {
    TrainingRun run(rich_vit(1), {.backend = backend});
    std::map<std::string, Bytes> parameters;
    for (const PersistentValue& value : run.store.layout().values())
      if (value.category == Category::kParameters) parameters[value.name] = bytes_of(run.store, value.name);
    run.run();
    const std::vector<double> once = values_of(run.store, "grad/head.weight");
    EXPECT_GT(*std::max_element(once.begin(), once.end()), 0);
    run.run();
    const std::vector<double> twice = values_of(run.store, "grad/head.weight");
    for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-6 * std::abs(once[i]));
    for (const auto& [name, bytes] : parameters) EXPECT_TRUE(bytes == bytes_of(run.store, name)) << name;
  }
}

TEST(TrainingStep, FreezingChangesNoOtherGradient) {
  const struct {
    const char* what;
    Trained trained;
  } rows[] = {
      {"biases alone", [](const std::string& name) { return name.ends_with("bias"); }},
      {"the head alone", [](const std::string& name) { return name.starts_with("head."); }},
      {"all but the last block", [](const std::string& name) { return !name.starts_with("blocks.1."); }},
      {"all but the norms", [](const std::string& name) { return name.find("norm") == std::string::npos; }},
  };
  for (const char* backend : {"ref", "cpu"}) {
    const auto all = run_step(rich_vit(2), {.backend = backend});
    for (const auto& row : rows) {
      const auto some = run_step(rich_vit(2), {.backend = backend, .trained = row.trained});
      for (const auto& [name, bytes] : all)
        if (name != "loss") {
          EXPECT_EQ(some.contains(name), row.trained(name.substr(5))) << name << " with " << row.what;
        }
      for (const auto& [name, bytes] : some)
        EXPECT_TRUE(bytes == all.at(name)) << name << " with " << row.what << " on " << backend;
    }
  }
}

// Records tanh(x w) + y w': when both are one parameter, its gradient is the sum of the two.
Program two_gemms(const char* first, const char* second) {
  Builder b;
  const Dim d('D', 6), f('F', 5);
  const auto gemm = [&](const char* input, const char* parameter) {
    const ValueId x = b.input(input, {DType::kF64, {{'B', 3}, d}});
    return b.add<LinearOp>({x, b.parameter(parameter, {DType::kF64, {f, d}})}, input);
  };
  const ValueId left = b.add<TanhOp>({gemm("x", first)}, "tanh");
  const ValueId sum = b.add<AddOp>({left, gemm("y", second)}, "sum");
  b.output("loss", sum);
  const ValueId seed = b.input("seed", b.desc(sum));
  return micro_program(b.finish(), {.seed = seed}, {}).program;
}

TEST(TrainingStep, ASharedParameterGetsTheSumOfItsGradients) {
  const auto gradients = [](const char* first, const char* second) {
    const ExecutionPlan plan =
        plan_execution(two_gemms(first, second), find_backend("ref"), cpu_device(1), {.pack = false});
    RankContext rank(plan.device);
    PersistentStore store(plan, rank);
    store.load(plan, [](const std::string&, const Shape& shape, std::span<float> target) {
      fill_by_rule({"w.weight", shape}, target);
    });
    Executor executor(plan, store, rank);
    fill_inputs(rank, executor);
    executor.run();
    std::vector<std::vector<double>> found;
    for (const char* name : {first, second}) found.push_back(values_of(store, gradient_name(name)));
    return found;
  };
  const auto apart = gradients("w", "v"), shared = gradients("w", "w");
  for (size_t i = 0; i < shared[0].size(); ++i) {
    EXPECT_NEAR(shared[0][i], apart[0][i] + apart[1][i], 1e-14);
    EXPECT_NE(apart[0][i], apart[1][i]);
  }
}

// Records the update that ends a step, as a program of its own: every parameter of `micro` by plain SGD.
Program record_sgd(const Program& micro) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const ValueId control = b.input("control", control_desc());
  for (const Value& value : micro.values) {
    if (value.kind != ValueKind::kParameter) continue;
    const ValueId sum = b.state(gradient_name(value.name), value.desc, Category::kGradients);
    b.add_all<SgdUpdateOp>({b.parameter(value.name, value.desc), sum, control}, value.name, UpdateScale{},
                           0.0, false);
  }
  return b.finish();
}

// Micro and update program over one layout, in arenas of their own or in a shared one.
struct WholeStep {
  std::shared_ptr<PersistentLayout> layout = std::make_shared<PersistentLayout>();
  ExecutionPlan micro, update;
  RankContext rank;
  PersistentStore store;
  Buffer arena;
  Executor run_micro, run_update;

  explicit WholeStep(bool shared)
      : micro(plan_training(rich_vit(2), {}, layout)),
        update(plan_execution(record_sgd(micro.program), find_backend("cpu"), cpu_device(2),
                              {.pack = false, .layout = layout})),
        rank(micro.device),
        store(layout, rank),
        arena(shared ? std::max(micro.memory.transient_bytes, update.memory.transient_bytes) : 0,
              Category::kTransient),
        run_micro(micro, store, rank, shared ? &arena : nullptr),
        run_update(update, store, rank, shared ? &arena : nullptr) {
    load_by_rule(store);
  }
  void step() {
    fill_inputs(rank, run_micro);
    run_micro.run();
    StepValues{.lr = 0.1, .step = 1}.write(run_update.input("control").as<double>());
    run_update.run();
  }
};

TEST(TrainingStep, ProgramsTakeTurnsInOneArena) {
  WholeStep apart(false), shared(true);
  EXPECT_EQ(shared.run_micro.transient_bytes() + shared.run_update.transient_bytes(), 0u);
  const Bytes start = bytes_of(shared.store, "head.weight");
  for (int i = 0; i < 3; ++i) {
    apart.step();
    shared.step();
  }
  EXPECT_FALSE(start == bytes_of(shared.store, "head.weight")) << "the update left no trace";
  for (const PersistentValue& value : shared.layout->values())
    EXPECT_TRUE(bytes_of(shared.store, value.name) == bytes_of(apart.store, value.name)) << value.name;
  const std::vector<double> sums = values_of(shared.store, "grad/head.weight");
  EXPECT_EQ(sums, std::vector<double>(sums.size(), 0.0)) << "an update empties the sums";
}

TEST(TrainingStep, ASharedArenaThatIsTooSmallIsRefused) {
  const ExecutionPlan plan = plan_training(rich_vit(1), {});
  RankContext rank(plan.device);
  PersistentStore store(plan, rank);
  const Buffer small(plan.memory.transient_bytes - 1, Category::kTransient);
  EXPECT_THROW(Executor(plan, store, rank, &small), Error);
}

size_t bytes_allocated() {
  size_t total = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) total += Buffer::allocated(static_cast<Category>(c));
  return total;
}

TEST(TrainingStep, AllocatesExactlyWhatWasPlanned) {
  for (const char* backend : {"ref", "cpu"})
    for (const PrecisionOptions& types : kTypes)
      for (const RecomputeOptions& again : {RecomputeOptions{}, {Recompute::kMlp}, {Recompute::kBlock}})
        for (int64_t batch : {1, 4}) {
          const size_t before = bytes_allocated();
          TrainingRun run(rich_vit(2),
                          {.backend = backend, .types = types, .again = again, .record = {.batch = batch}});
          EXPECT_EQ(bytes_allocated() - before, run.plan.memory.peak_bytes());
          run.run();
          EXPECT_EQ(bytes_allocated() - before, run.plan.memory.peak_bytes()) << "running allocates";
        }
}

TEST(TrainingStep, CheckedNodeByNode) {
  for (const PrecisionOptions& types : kTypes)
    for (bool fused : {false, true}) {
      const StepSettings settings{.fused = fused, .types = types, .again = {Recompute::kBlock}};
      TrainingRun run(rich_vit(2), settings);
      for (int i = 0; i < 2; ++i) {  // the second time onto sums that are not zero
        fill_inputs(run.rank, run.executor);
        EXPECT_NO_THROW(run.executor.run_checked(run.store)) << label(settings);
      }
    }
}

TEST(TrainingStep, ACheckedRunNamesTheGradientThatDiffers) {
  TrainingRun run(rich_vit(1), {}), other(rich_vit(1), {});
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

}  // namespace
}  // namespace vitrail
