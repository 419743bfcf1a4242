// Working parameters in the host's memory, with ZeRO 3: a run ends with the bits of one that keeps them on
// the device, on as many ranks; checkpoints do not tell them apart; memory, the host's too, is as planned.
#include "train/helpers/queue_device.h"
#include "train/helpers/stepped.h"

namespace vitrail::testing {
namespace {

struct Case {
  const char* name;
  std::function<void(TrainConfig&)> make = [](TrainConfig&) {};
  int ranks = 2;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

// Accumulates two micro-batches, clips, keeps averages and evaluates them, draws whatever can be drawn.
TrainConfig config_of(const Case& c, int64_t steps = 7) {
  TrainConfig config = full_config(steps);
  config.train.batch = 24, config.train.micro_batch = 0, config.train.accumulation = 2;
  config.mesh.bucket_mb = 0.004;  // several buckets
  config.mesh.zero = 3;
  c.make(config);
  return config;
}

TrainConfig with(Offload offload, TrainConfig config) {
  config.mesh.offload = offload;
  return config;
}

const Case kCases[] = {
    {"dp2"},
    {"dp3", [](TrainConfig&) {}, 3},
    {"one_rank", [](TrainConfig&) {}, 1},
    {"dp2_tp2", [](TrainConfig& c) { c.mesh.tp = 2; }, 4},
    {"tp2", [](TrainConfig& c) { c.mesh.tp = 2; }},
    {"sp2", [](TrainConfig& c) { c.mesh.sp = 2; }},
    {"bf16", [](TrainConfig& c) { c.train.dtype = ComputeType::kBF16; }},
    {"one_rank_bf16", [](TrainConfig& c) { c.train.dtype = ComputeType::kBF16; }, 1},
    {"whole_sums", [](TrainConfig& c) { c.mesh.accumulate = KeptSums::kWhole; }},
    {"cheap", [](TrainConfig& c) { c.train.recompute = Recompute::kCheap; }},
    {"mlp", [](TrainConfig& c) { c.train.recompute = Recompute::kMlp; }},
    {"block", [](TrainConfig& c) { c.train.recompute = Recompute::kBlock; }, 3},
    {"sgd", [](TrainConfig& c) { c.optim.name = "sgd", c.optim.momentum = 0.9; }},
    {"no_average", [](TrainConfig& c) { c.optim.ema_decay = 0; }},
    {"skipped",  // the first updates overflow, and the others do not
     [](TrainConfig& c) { c.train.dtype = ComputeType::kF16, c.loss_scale.initial = 1048576; }},
    {"frozen", [](TrainConfig& c) { c.params.freeze = {"blocks.0.*"}; }},
    {"one_rank_frozen", [](TrainConfig& c) { c.params.freeze = {"blocks.0.*"}; }, 1},
    {"adapters", [](TrainConfig& c) { c.lora.rank = 2; }}};

class ParametersOnHost : public ::testing::TestWithParam<Case> {};

TEST_P(ParametersOnHost, EndWithTheBitsOfThoseOnTheDevice) {
  const WorkFolder work;
  const TrainConfig config = config_of(GetParam());
  const RunOptions options{.ranks = GetParam().ranks};
  const Ran wanted = train(with(Offload::kOptimizer, config), work / "device", options);
  const Ran found = train(with(Offload::kParameters, config), work / "host", options);
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

INSTANTIATE_TEST_SUITE_P(Runs, ParametersOnHost, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

TEST(OffloadParameters, ARunGoesOnWithOrWithoutIt) {
  for (const int ranks : {1, 2}) {
    const WorkFolder work;
    const TrainConfig config = config_of(kCases[0]);
    const Offload all[] = {Offload::kNone, Offload::kOptimizer, Offload::kParameters};
    train(config, work / "whole", {.ranks = ranks});
    for (const Offload first : all)
      for (const Offload second : all) {
        if (first == second || (first != Offload::kParameters && second != Offload::kParameters)) continue;
        const std::string folder = work / strf("%s-%s", enum_name(first), enum_name(second));
        train(with(first, config), folder, {.stop_after = 4, .ranks = ranks});
        const Ran rest = train(with(second, config), folder, {.resume = ResumeMode::kNewest, .ranks = ranks});
        EXPECT_TRUE(rest.outcome.finished);
        EXPECT_EQ(differing(state_of(folder), state_of(work / "whole")), std::vector<std::string>())
            << folder;
      }
  }
}

// Another number of ranks goes on as well, within what sums of another order round.
TEST(OffloadParameters, OneRankGoesOnWhereTwoStopped) {
  const WorkFolder work;
  const TrainConfig config = with(Offload::kParameters, config_of(kCases[0]));
  const Ran whole = train(config, work / "whole", {.ranks = 1});
  train(config, work / "two", {.stop_after = 4, .ranks = 2});
  const Ran rest = train(config, work / "two", {.resume = ResumeMode::kNewest, .ranks = 1});
  ASSERT_TRUE(rest.outcome.finished);
  const std::vector<double> all = whole.losses(), made = rest.losses();
  ASSERT_GT(made.size(), 1u);
  EXPECT_LT(worst_share(made, {all.end() - std::ssize(made), all.end()}), 1e-5);
}

class StepWithParametersOnHost : public ::testing::TestWithParam<ComputeType> {
 protected:
  static RunSetup setup() {
    TrainConfig config = config_of({"one_rank"});
    config.train.dtype = GetParam();
    config.params.freeze = {"blocks.1.mlp.*"};
    config.loader.on_device = OnDevice::kOff;
    config.mesh.zero = 3;
    config.train.batch = 8;
    return set_up(config);
  }
};

TEST_P(StepWithParametersOnHost, OnADeviceWithMemoryOfItsOwn) {
  const RunSetup run = setup();
  StepConfig moved = run.step;
  moved.offload = Offload::kParameters;
  Stepped wanted(run.step, *run.model, open_host_device());
  Stepped found(moved, *run.model, std::make_unique<QueueDevice>());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(found.update(i), wanted.update(i)) << "update " << i;
  EXPECT_EQ(differing(found.state(), wanted.state()), std::vector<std::string>());
  EXPECT_GT(dynamic_cast<QueueDevice&>(found.device()).late, 50);
}

TEST_P(StepWithParametersOnHost, TakesTheMemoryThatWasPlanned) {
  const RunSetup run = setup();
  StepConfig moved = run.step;
  moved.offload = Offload::kParameters;
  Stepped found(moved, *run.model, std::make_unique<QueueDevice>());
  const StepPlan& plan = found.plan();
  auto& device = dynamic_cast<QueueDevice&>(found.device());
  size_t own = 0, locked = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) {
    own += device.allocated(static_cast<Category>(c));
    locked += device.locked().allocated(static_cast<Category>(c));
  }
  EXPECT_EQ(own, plan.peak_bytes());
  EXPECT_EQ(found.step().allocated_bytes(), plan.peak_bytes());
  EXPECT_EQ(found.step().host_allocated_bytes(), plan.host_bytes());
  EXPECT_EQ(locked, plan.page_locked_bytes());
  EXPECT_EQ(sum_of(plan.host_rows()), plan.host_bytes());
  EXPECT_EQ(plan.layout->bytes(Category::kParameters), 0u) << "what the device keeps of parameters";
  size_t copies = 0;
  for (const PersistentValue& value : plan.layout->values())
    if (value.contained && value.category == Category::kParameters) copies += value.desc.bytes();
  EXPECT_GT(copies, 0u);
  EXPECT_GE(plan.layout->bytes(Home::kLocked, Category::kParameters), copies);
}

INSTANTIATE_TEST_SUITE_P(Types, StepWithParametersOnHost,
                         ::testing::Values(ComputeType::kF32, ComputeType::kBF16),
                         [](const auto& test) { return enum_name(test.param); });

// A model whose parameters weigh more than its images.
StepPlan planned_on_gpu(Offload offload) {
  TrainConfig config = tiny_config(1);
  set_model(config, "width", [](VitConfig& m) { m.width = 256; });
  set_model(config, "depth", [](VitConfig& m) { m.depth = 6; });
  config.train.batch = 2;
  StepConfig step = set_up(config).step;
  step.offload = offload;
  if (offload == Offload::kParameters) step.zero = 3;
  return plan_step(step, cuda_backend(), planned_cuda_device("a GPU", 90, 132));
}

TEST(OffloadParameters, AreNamedWhereTheOptimizersOffloadIsNotEnough) {
  const StepPlan all = planned_on_gpu(Offload::kNone), state = planned_on_gpu(Offload::kOptimizer),
                 least = planned_on_gpu(Offload::kParameters);
  ASSERT_LT(least.peak_bytes(), state.peak_bytes());
  const auto none = [](int64_t) { return NamedBytes(); };
  const auto text = [&](const StepPlan& plan, size_t bytes) {
    return std::string(error_of([&] { require_step_fits(plan, none, {bytes, "there"}); }).what());
  };
  const std::string named = "mesh.zero=3 mesh.offload=parameters needs";
  EXPECT_NE(text(all, least.peak_bytes()).find(named), std::string::npos) << text(all, least.peak_bytes());
  EXPECT_NE(text(state, least.peak_bytes()).find(named), std::string::npos);
  EXPECT_EQ(text(all, state.peak_bytes()).find(named), std::string::npos) << "the optimizer's is enough";
  EXPECT_EQ(text(least, least.peak_bytes() - 1).find("mesh.offload"), std::string::npos);
}

TEST(OffloadParameters, NeedTheHostsMemory) {
  const StepPlan plan = planned_on_gpu(Offload::kParameters);
  EXPECT_NO_THROW(require_host_room(plan, 1000, 1, {plan.host_bytes() + 1000, "free"}));
  const Error error = error_of([&] { require_host_room(plan, 1000, 1, {plan.host_bytes(), "free here"}); });
  EXPECT_EQ(exit_code(error.kind()), 71);
  for (const char* part :
       {"mesh.offload=parameters", "master weights", "parameters, page-locked", "free here"})
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
}

}  // namespace
}  // namespace vitrail::testing
