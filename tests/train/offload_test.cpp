// Optimizer state in the host's memory: a run ends with the bits of one whose state lies on the device,
// whatever it trains with; checkpoints do not tell the two apart; and memory, the host's too, is as planned.
#include "models/zoo.h"
#include "train/helpers/queue_device.h"
#include "train/helpers/stepped.h"
#include "train/helpers/tiny_run.h"
#include "train/run_setup.h"

namespace vitrail::testing {
namespace {

struct OffloadCase {
  const char* name;
  std::function<void(TrainConfig&)> make;
  int ranks = 1;
};

void PrintTo(const OffloadCase& c, std::ostream* out) {
  *out << c.name;
}

// Accumulates two micro-batches, clips, keeps averages and evaluates them, draws whatever can be drawn.
TrainConfig config_of(const OffloadCase& c, int64_t steps = 7) {
  TrainConfig config = full_config(steps);
  config.mesh.bucket_mb = 0.004;  // several buckets
  c.make(config);
  return config;
}

TrainConfig offloaded(TrainConfig config) {
  config.mesh.offload = Offload::kOptimizer;
  return config;
}

const OffloadCase kOffloadCases[] = {
    {"adamw", [](TrainConfig&) {}},
    {"one_bucket", [](TrainConfig& c) { c.mesh.bucket_mb = 64; }},
    {"sgd", [](TrainConfig& c) { c.optim.name = "sgd", c.optim.momentum = 0.9; }},
    {"lamb", [](TrainConfig& c) { c.optim.name = "lamb"; }},
    {"lion", [](TrainConfig& c) { c.optim.name = "lion", c.optim.lr = 1e-4; }},
    {"low_moment", [](TrainConfig& c) { c.optim.moment_dtype = MomentDType::kBF16; }},
    {"no_average", [](TrainConfig& c) { c.optim.ema_decay = 0; }},
    {"bf16", [](TrainConfig& c) { c.train.dtype = ComputeType::kBF16; }},
    {"skipped",  // the first updates overflow, and the others do not
     [](TrainConfig& c) { c.train.dtype = ComputeType::kF16, c.loss_scale.initial = 1048576; }},
    {"frozen", [](TrainConfig& c) { c.params.freeze = {"blocks.0.*"}; }},
    {"adapters", [](TrainConfig& c) { c.lora.rank = 2; }},
    {"dp2", [](TrainConfig&) {}, 2},
    {"zero1", [](TrainConfig& c) { c.mesh.zero = 1; }, 2},
    {"zero1_bf16", [](TrainConfig& c) { c.mesh.zero = 1, c.train.dtype = ComputeType::kBF16; }, 2},
    {"zero2", [](TrainConfig& c) { c.mesh.zero = 2; }, 2},
    {"zero3", [](TrainConfig& c) { c.mesh.zero = 3; }, 2},
    {"zero3_bf16", [](TrainConfig& c) { c.mesh.zero = 3, c.train.dtype = ComputeType::kBF16; }, 2},
    {"tp2", [](TrainConfig& c) { c.mesh.tp = 2; }, 2}};

class OffloadedRun : public ::testing::TestWithParam<OffloadCase> {};

TEST_P(OffloadedRun, EndsWithTheBitsOfOneOnTheDevice) {
  const WorkFolder work;
  const TrainConfig config = config_of(GetParam());
  const RunOptions options{.ranks = GetParam().ranks};
  const Ran wanted = train(config, work / "device", options);
  const Ran found = train(offloaded(config), work / "host", options);
  ASSERT_TRUE(found.outcome.finished);
  EXPECT_EQ(found.losses(), wanted.losses());
  ASSERT_GT(state_of(work / "device").size(), 30u);
  EXPECT_EQ(differing(state_of(work / "host"), state_of(work / "device")), std::vector<std::string>());
  ASSERT_EQ(found.evals.size(), wanted.evals.size());
  for (size_t i = 0; i < wanted.evals.size(); ++i) {
    EXPECT_EQ(found.evals[i].weights, wanted.evals[i].weights);
    EXPECT_EQ(found.evals[i].loss, wanted.evals[i].loss) << wanted.evals[i].weights;
  }
  if (GetParam().name == std::string("skipped")) {
    EXPECT_GT(found.steps.back().skipped, 0);
    EXPECT_LT(found.steps.back().skipped, std::ssize(found.steps));
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, OffloadedRun, ::testing::ValuesIn(kOffloadCases),
                         [](const auto& test) { return test.param.name; });

TEST(Offload, ARunGoesOnWithOrWithoutIt) {
  for (const ComputeType type : {ComputeType::kF32, ComputeType::kBF16}) {
    const WorkFolder work;
    TrainConfig config = config_of(kOffloadCases[0]);
    config.train.dtype = type;
    train(config, work / "whole");
    for (const bool first : {false, true}) {
      const std::string folder = work / (first ? "down" : "up");
      train(first ? offloaded(config) : config, folder, {.stop_after = 4});
      const Ran rest = train(first ? config : offloaded(config), folder, {.resume = ResumeMode::kNewest});
      EXPECT_TRUE(rest.outcome.finished);
      EXPECT_EQ(differing(state_of(folder), state_of(work / "whole")), std::vector<std::string>());
    }
  }
}

class OffloadedStep : public ::testing::TestWithParam<ComputeType> {
 protected:
  static TrainConfig config() {
    TrainConfig config = config_of(kOffloadCases[0]);
    config.train.dtype = GetParam();
    config.params.freeze = {"blocks.1.mlp.*"};
    config.loader.on_device = OnDevice::kOff;
    return config;
  }
};

TEST_P(OffloadedStep, OnADeviceWithMemoryOfItsOwn) {
  const RunSetup setup = set_up(config());
  StepConfig moved = setup.step;
  moved.offload = Offload::kOptimizer;
  Stepped wanted(setup.step, *setup.model, open_host_device());
  Stepped found(moved, *setup.model, std::make_unique<QueueDevice>());
  ASSERT_GT(found.plan().offload->trained, 3u);
  ASSERT_GT(found.plan().offload->buckets.size(), found.plan().offload->trained);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(found.update(i), wanted.update(i)) << "update " << i;
  EXPECT_EQ(differing(found.state(), wanted.state()), std::vector<std::string>());
  EXPECT_GT(dynamic_cast<QueueDevice&>(found.device()).late, 20);
}

TEST_P(OffloadedStep, TakesTheMemoryThatWasPlanned) {
  const RunSetup setup = set_up(config());
  StepConfig moved = setup.step;
  moved.offload = Offload::kOptimizer;
  Stepped all(setup.step, *setup.model, std::make_unique<QueueDevice>());
  Stepped found(moved, *setup.model, std::make_unique<QueueDevice>());
  auto& device = dynamic_cast<QueueDevice&>(found.device());
  size_t own = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) own += device.allocated(static_cast<Category>(c));
  EXPECT_EQ(own, found.plan().peak_bytes());
  EXPECT_EQ(found.step().allocated_bytes(), found.plan().peak_bytes());
  EXPECT_EQ(found.step().host_allocated_bytes(), found.plan().host_bytes());
  EXPECT_EQ(device.locked().allocated(Category::kStaging), found.plan().page_locked_bytes());
  EXPECT_EQ(sum_of(found.plan().host_rows()), found.plan().host_bytes());
  EXPECT_LT(found.plan().peak_bytes(), all.plan().peak_bytes());
  const size_t moments = all.plan().layout->bytes(Category::kOptimizer);
  EXPECT_GT(found.plan().layout->host_bytes(Category::kOptimizer), moments / 2);
  EXPECT_LT(found.plan().layout->bytes(Category::kOptimizer), 1024u) << "loss scale and counters";
}

INSTANTIATE_TEST_SUITE_P(Types, OffloadedStep, ::testing::Values(ComputeType::kF32, ComputeType::kBF16),
                         [](const auto& test) { return enum_name(test.param); });

StepPlan plan_on_gpu(Offload offload) {
  TrainConfig config = tiny_config(1);
  set_model(config, "width", [](VitConfig& m) { m.width = 64; });
  StepConfig step = set_up(config).step;
  step.offload = offload;
  return plan_step(step, cuda_backend(), planned_cuda_device("a GPU", 90, 132));
}

TEST(Offload, IsNamedWhereAStepDoesNotFit) {
  const StepPlan all = plan_on_gpu(Offload::kNone), less = plan_on_gpu(Offload::kOptimizer);
  ASSERT_LT(less.peak_bytes(), all.peak_bytes());
  const auto none = [](int64_t) { return NamedBytes(); };
  const Error error = error_of([&] { require_step_fits(all, none, {less.peak_bytes(), "there"}); });
  EXPECT_EQ(exit_code(error.kind()), 71);
  EXPECT_NE(std::string(error.what()).find("mesh.offload=optimizer needs"), std::string::npos)
      << error.what();
  EXPECT_NO_THROW(require_step_fits(less, none, {less.peak_bytes(), "there"}));
}

TEST(Offload, NeedsTheHostsMemory) {
  const StepPlan plan = plan_on_gpu(Offload::kOptimizer);
  const size_t needed = plan.host_bytes() + 1000;
  EXPECT_NO_THROW(require_host_room(plan, 1000, 1, {needed, "free"}));
  for (const auto& [free, sharing] : {std::pair{needed - 1, 1}, {needed, 2}}) {
    const Error error = error_of([&, free = free, sharing = sharing] {
      require_host_room(plan, 1000, sharing, {free, "free here"});
    });
    EXPECT_EQ(exit_code(error.kind()), 71);
    for (const char* part : {"mesh.offload=optimizer", "master weights", "page-locked", "free here"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Offload, RefusesWhatItCannotDo) {
  const auto refused = [](const std::function<void(TrainConfig&)>& make, int ranks) {
    const WorkFolder work;
    TrainConfig config = tiny_config(1);
    config.mesh.offload = Offload::kOptimizer;
    make(config);
    Ran ran;
    return train_error(ran, config, work / "run", {.ranks = ranks});
  };
  const OffloadCase cases[] = {
      {"parameters with mesh.zero 0", [](TrainConfig& c) { c.mesh.offload = Offload::kParameters; }},
      {"parameters with mesh.zero 2",
       [](TrainConfig& c) { c.mesh.offload = Offload::kParameters, c.mesh.zero = 2; }, 2},
      {"mesh.pp 2", [](TrainConfig& c) { c.mesh.pp = 2, c.train.micro_batch = 4; }, 2},
      {"lamb runs with it", [](TrainConfig& c) { c.optim.name = "lamb", c.mesh.zero = 1; }, 2}};
  for (const OffloadCase& c : cases) {
    const Error error = refused(c.make, c.ranks);
    EXPECT_EQ(exit_code(error.kind()), 64) << error.what();
    EXPECT_NE(std::string(error.what()).find(c.name), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace vitrail::testing
