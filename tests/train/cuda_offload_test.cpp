// Optimizer state on the host of a GPU: the update is the CPU's to the bit, the run follows one whose state
// lies on the GPU, and both memories are as planned.
#include "cuda_test.h"
#include "train/helpers/planned_memory.h"
#include "train/train_state.h"

namespace vitrail::testing {
namespace {

class CudaOffload : public CudaTest {};

TrainConfig config_of(ComputeType type, int64_t steps) {
  TrainConfig config = tiny_config(steps);
  set_image(config, 32);
  set_model(config, "width", [](VitConfig& m) { m.width = 96; });
  set_model(config, "heads", [](VitConfig& m) { m.heads = 3; });
  set_model(config, "mlp", [](VitConfig& m) { m.mlp = 192; });
  config.data.train = "synthetic:3x32x32x10x80";
  config.train.batch = 16;
  config.train.dtype = type;
  config.optim.weight_decay = 0.05;
  config.optim.ema_decay = 0.9;
  config.loader.on_device = OnDevice::kOff;
  config.mesh.bucket_mb = 0.1;  // several buckets
  return config;
}

std::vector<float> made(uint64_t seed, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = counter_uniform(seed, i);
  return values;
}

// The state of a CPU's step is made that of the GPU's, gradients included, before both update. Nothing is
// clipped: the norms are sums in another order.
TEST_F(CudaOffload, UpdatesAsTheCpuDoes) {
  for (const ComputeType type : {ComputeType::kF32, ComputeType::kBF16}) {
    const RunSetup setup = set_up(config_of(type, 1));
    StepConfig moved = setup.step;
    moved.offload = Offload::kOptimizer;
    RankContext gpu(cuda_device()), cpu(cpu_device());
    const StepPlan there = plan_step(moved, cuda_backend(), gpu.device),
                   here = plan_step(setup.step, cpu_backend(), cpu.device);
    TrainStep on_gpu(there, gpu), on_cpu(here, cpu);
    on_gpu.start(setup.model->filler()), on_cpu.start(setup.model->filler());
    for (int64_t number = 0; number < 4; ++number) {
      const StepConfig& c = setup.step;
      const auto images = made(static_cast<uint64_t>(number), c.micro_batch * 3 * 32 * 32),
                 targets = made(99, c.micro_batch * c.model.classes);
      const std::vector<float> weights(static_cast<size_t>(c.micro_batch), 0.1f);
      on_gpu.run_micro(
          {.images = images, .targets = targets, .weights = weights, .teacher = {}, .step = number});
      const Tensors before = state_of(on_gpu);
      for (const TrainedParam& param : c.trained) {
        const PersistentValue& sum = on_cpu.store().layout().at(gradient_name(param.name));
        on_cpu.store().write(sum, before.at(sum.name));
      }
      on_gpu.run_update(0.01), on_cpu.run_update(0.01);
      const Tensors found = state_of(on_gpu), wanted = state_of(on_cpu);
      for (const auto& [name, bytes] : wanted)
        if (found.contains(name) && !name.starts_with("loss/")) {
          EXPECT_EQ(found.at(name), bytes) << name;
        }
      for (const auto& [name, bytes] : found)
        if (name.ends_with("@f32")) {
          EXPECT_EQ(bytes, found.at(name.substr(0, name.find('@')))) << name;
        }
    }
  }
}

TEST_F(CudaOffload, RunsFollowThoseOnTheGpu) {
  for (const ComputeType type : {ComputeType::kF32, ComputeType::kBF16}) {
    TrainConfig config = config_of(type, 10);
    config.optim.clip_norm = 1;
    const std::vector<double> wanted = losses_of(config, {.cuda = true});
    config.mesh.offload = Offload::kOptimizer;
    EXPECT_LE(worst_share(losses_of(config, {.cuda = true}), wanted), type == ComputeType::kF32 ? 1e-5 : 1e-2)
        << enum_name(type);
  }
}

TEST_F(CudaOffload, TakesTheMemoryThatWasPlanned) {
  const RunSetup setup = set_up(config_of(ComputeType::kBF16, 1));
  StepConfig moved = setup.step;
  moved.offload = Offload::kOptimizer;
  RankContext gpu(cuda_device());
  const StepPlan plan = plan_step(moved, cuda_backend(), gpu.device);
  const TrainStep step(plan, gpu);
  size_t own = 0;
  for (size_t c = 0; c < kCategoryCount; ++c) own += gpu.memory()->allocated(static_cast<Category>(c));
  EXPECT_EQ(own, plan.peak_bytes());
  EXPECT_EQ(step.host_allocated_bytes(), plan.host_bytes());
  EXPECT_EQ(gpu.hardware->host_memory()->allocated(Category::kStaging), plan.page_locked_bytes());
  EXPECT_LT(plan.peak_bytes(), plan_step(setup.step, cuda_backend(), gpu.device).peak_bytes());
}

}  // namespace
}  // namespace vitrail::testing
