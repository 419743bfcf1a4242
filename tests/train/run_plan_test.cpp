// A run's needs before it starts: which micro-batch, which blocks, which offload, how much work.
#include "train/run_plan.h"

#include <gtest/gtest.h>

#include "telemetry/format.h"
#include "thrown.h"
#include "train/helpers/stepped.h"
#include "train/helpers/tiny_run.h"
#include "train/offload_time.h"

namespace vitrail::testing {
namespace {

// A batch that holds stays; one that the micro-batch divides does, too.
TEST(TakeMicroBatch, GivesWayWhereNothingHolds) {
  const struct {
    int64_t images;
    bool batch_holds, accumulation_holds;
    int64_t batch, accumulation;  // then, 0: to be found
  } rows[] = {{4, false, false, 12, 0}, {5, false, false, 0, 0}, {5, true, false, 12, 0},
              {4, false, true, 0, 3},   {4, true, true, 12, 3},  {12, false, false, 12, 0}};
  for (const auto& row : rows) {
    RunConfig run;
    run.batch = 12, run.micro_batch = 2, run.accumulation = 3;
    take_micro_batch(row.images, row.batch_holds, row.accumulation_holds, run);
    EXPECT_EQ((std::vector<int64_t>{run.micro_batch, run.batch, run.accumulation}),
              (std::vector<int64_t>{row.images, row.batch, row.accumulation}));
  }
}

TrainConfig pipeline(int64_t stages, int64_t chunks, int64_t depth) {
  TrainConfig config = tiny_config(1);
  set_model(config, "depth", [&](VitConfig& m) { m.depth = depth; });
  config.mesh.pp = stages, config.mesh.virtual_stages = chunks;
  if (chunks > 1) config.mesh.schedule = PipelineSchedule::kInterleaved;
  config.train.accumulation = 4;
  return config;
}

TEST(RunPlan, BlocksOfStages) {
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  TrainConfig config = pipeline(3, 1, 5);
  config.mesh.stages = {"blocks.2,blocks.3"};
  const RunPlan plan(config, {}, cpu_backend(), device);
  EXPECT_EQ(plan.blocks_of(0), "0-1");
  EXPECT_EQ(plan.blocks_of(1), "2");
  EXPECT_EQ(plan.blocks_of(2), "3-4");
  ASSERT_EQ(plan.stages().size(), 3u);
  EXPECT_EQ(plan.ranks(), 3);
  for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(plan.stages()[static_cast<size_t>(stage)].rank, stage);
  EXPECT_EQ(plan.stages()[0].in_flight, 3);
  EXPECT_EQ(plan.stages()[2].in_flight, 1);
  // Five tokens of sixteen floats for each of two images, four times, forward and backward but at the ends.
  const double step = 4.0 * 2 * 5 * 16 * 4;
  EXPECT_EQ(plan.stages()[0].sent_bytes, step);
  EXPECT_EQ(plan.stages()[1].sent_bytes, 2 * step);
  EXPECT_EQ(plan.stages()[2].sent_bytes, step);
  TrainConfig twice = pipeline(2, 2, 6);
  twice.mesh.stages = {"blocks.1,blocks.3,blocks.5"};
  const RunPlan turns(twice, {}, cpu_backend(), device);
  EXPECT_EQ(turns.blocks_of(0), "0, 3-4");
  EXPECT_EQ(turns.blocks_of(1), "1-2, 5");
}

TEST(RunPlan, DataThatIsNotThereIsAssumed) {
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  TrainConfig config = tiny_config(0);
  const RunPlan known(config, {}, cpu_backend(), device);
  EXPECT_TRUE(known.knows_data());
  EXPECT_EQ(known.total_steps(), known.setup().total_steps);
  EXPECT_GT(known.total_steps(), 0);
  const RunPlan asked(config, 7, cpu_backend(), device);
  EXPECT_FALSE(asked.knows_data());
  EXPECT_EQ(asked.total_steps(), 0) << "the number of images is not known";
  EXPECT_EQ(asked.setup().step.model.classes, 7);
  EXPECT_EQ(asked.notes().at(0), "no data: 7 classes assumed");
  EXPECT_EQ(asked.trained_params() - known.trained_params(), 3 * (asked.setup().step.model.width + 1));
  config.data.train.clear();
  config.data.class_names = {"a", "b", "c"};
  const RunPlan named(config, {}, cpu_backend(), device);
  EXPECT_EQ(named.setup().step.model.classes, 3);
  EXPECT_EQ(named.notes().at(0),
            "no data: 3 classes assumed, the config's or the model's own; --classes gives another number");
  config.train.steps = 5;
  EXPECT_EQ(RunPlan(config, 7, cpu_backend(), device).total_steps(), 5);
  EXPECT_EQ(error_of([&] { RunPlan(config, 0, cpu_backend(), device); }).kind(), ErrorKind::kUsage);
  config.data.train = "folder:/nowhere/at/all";
  const RunPlan gone(config, {}, cpu_backend(), device);
  EXPECT_FALSE(gone.knows_data());
  EXPECT_NE(gone.notes().at(0).find("/nowhere/at/all"), std::string::npos);
}

// Where the number of images is not known, the dataset is not taken for one that fits a GPU.
TEST(RunPlan, ADatasetOfUnknownSizeIsNotKeptOnTheGpu) {
  DeviceInfo gpu = planned_cuda_device("a GPU", 90, 132);
  gpu.memory_bytes = size_t{80} << 30;
  const struct {
    OnDevice asked;
    ImageForm known, assumed, on_cpu;
  } rows[] = {{OnDevice::kAuto, ImageForm::kStored, ImageForm::kPixels, ImageForm::kFloats},
              {OnDevice::kImages, ImageForm::kPixels, ImageForm::kPixels, ImageForm::kPixels},
              {OnDevice::kDataset, ImageForm::kStored, ImageForm::kStored, ImageForm::kStored},
              {OnDevice::kOff, ImageForm::kFloats, ImageForm::kFloats, ImageForm::kFloats}};
  for (const auto& row : rows) {
    SCOPED_TRACE(enum_name(row.asked));
    TrainConfig config = tiny_config(1);
    config.augment.crop = CropKind::kPad;
    config.loader.on_device = row.asked;
    EXPECT_EQ(RunPlan(config, {}, cuda_backend(), gpu).setup().step.images, row.known);
    EXPECT_EQ(RunPlan(config, 4, cuda_backend(), gpu).setup().step.images, row.assumed);
    EXPECT_EQ(RunPlan(config, 4, cpu_backend(), planned_cpu_device(1, "avx2")).setup().step.images,
              row.on_cpu);
  }
}

TEST(RunPlan, EveryStageTrainsSomething) {
  TrainConfig config = pipeline(2, 1, 4);
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  const auto refused = [&](const std::vector<std::string>& freeze) {
    config.params.freeze = freeze;
    return thrown_by([&] { RunPlan(config, {}, cpu_backend(), device); });
  };
  const auto text = [](int stage) {
    return strf(
        "config: stage %d of mesh.pp 2 holds no parameter that is trained: a pipeline trains some in every "
        "stage",
        stage);
  };
  EXPECT_EQ(refused({"*", "!head.*"}), text(0));
  EXPECT_EQ(refused({"*", "!blocks.1.norm1.bias"}), text(1));
  EXPECT_EQ(refused({"*", "!blocks.1.norm1.bias", "!head.bias"}), "nothing");
}

TEST(RunPlan, AccumulationMultipliesTheWorkOfAMicroBatch) {
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  TrainConfig config = tiny_config(1);
  config.train.batch = 12, config.train.micro_batch = 4;
  const RunPlan plan(config, {}, cpu_backend(), device);
  const double micro = plan.step().micro.program.cost().flops,
               update = plan.step().update.program.cost().flops;
  EXPECT_DOUBLE_EQ(plan.update_flops(), 3 * micro + update);
  const auto levels = plan.recompute_levels();
  ASSERT_EQ(levels.size(), 5u);
  const Recompute order[] = {Recompute::kNone, Recompute::kNorms, Recompute::kCheap, Recompute::kMlp,
                             Recompute::kBlock};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(levels[i].level, order[i]);
  EXPECT_EQ(levels[0].peak_bytes, plan.peak_bytes());
  EXPECT_EQ(levels[0].update_flops, plan.update_flops());
  EXPECT_GT(levels[4].update_flops, levels[0].update_flops);
  EXPECT_TRUE(plan.kept_sums().empty()) << "one rank";
}

TEST(RunPlan, KeptSumsAreAChoiceOfZero2AndSeveralMicroBatches) {
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  for (const auto& [dp, zero, accumulation, choices] :
       {std::tuple{2, 2, 2, 2u}, {2, 3, 2, 2u}, {2, 1, 2, 0u}, {1, 2, 2, 0u}, {2, 2, 1, 0u}}) {
    TrainConfig config = tiny_config(1);
    config.mesh.dp = dp, config.mesh.zero = zero, config.train.accumulation = accumulation;
    const RunPlan plan(config, {}, cpu_backend(), device);
    const auto sums = plan.kept_sums();
    ASSERT_EQ(sums.size(), choices) << dp << zero << accumulation;
    if (choices == 0) continue;
    EXPECT_EQ(sums[0].kept, KeptSums::kPiece);
    EXPECT_EQ(sums[0].peak_bytes, plan.peak_bytes());
    EXPECT_EQ(sums[1].kept, KeptSums::kWhole);
    EXPECT_LT(sums[1].sent_bytes, sums[0].sent_bytes) << "exchanged once";
  }
}

TEST(OffloadChoices, GiveLessRoomFirst) {
  using Texts = std::vector<std::string>;
  const auto choices = [](const std::function<void(StepConfig&)>& change) {
    StepConfig step;
    step.optim.name = "adamw";
    change(step);
    Texts texts;
    for (const OffloadChoice& choice : offload_choices(step)) texts.push_back(choice.settings);
    return texts;
  };
  const std::string state = "mesh.offload=optimizer", all = "mesh.zero=3 mesh.offload=parameters",
                    block = " train.recompute=block";
  EXPECT_EQ(choices([](StepConfig&) {}), (Texts{state, state + block, all, all + block}));
  EXPECT_EQ(choices([](StepConfig& c) { c.recompute.level = Recompute::kBlock; }), (Texts{state, all}));
  EXPECT_EQ(choices([](StepConfig& c) { c.offload = Offload::kOptimizer; }), (Texts{all, all + block}));
  EXPECT_EQ(choices([](StepConfig& c) { c.offload = Offload::kParameters; }), Texts());
  EXPECT_EQ(choices([](StepConfig& c) { c.zero = 3; }),
            (Texts{state, state + block, "mesh.offload=parameters", "mesh.offload=parameters" + block}));
  // LAMB's norms cross ranks that hold parts.
  const auto lamb = [&](std::array<int, 4> sizes, int zero) {
    return choices([&](StepConfig& c) {
      c.optim.name = "lamb", c.zero = zero, c.recompute.level = Recompute::kBlock;
      c.distribution.mesh = {sizes, 0};
    });
  };
  EXPECT_EQ(lamb({1, 1, 1, 1}, 0), (Texts{state, all}));
  EXPECT_EQ(lamb({2, 1, 1, 1}, 0), (Texts{state}));
  EXPECT_EQ(lamb({2, 1, 1, 1}, 1), Texts());
  EXPECT_EQ(lamb({1, 2, 1, 1}, 0), Texts());
  const auto one = offload_choices(StepConfig{});
  EXPECT_EQ(one[2].config.zero, 3);
  EXPECT_EQ(one[2].config.offload, Offload::kParameters);
  EXPECT_EQ(one[1].config.recompute.level, Recompute::kBlock);
}

// By the bytes that travel and those that the host reads and writes, at the rates that are assumed.
TEST(OffloadTime, FollowsFromBytes) {
  StepConfig config = set_up(tiny_config(1)).step;
  const DeviceInfo gpu = planned_cuda_device("a GPU", 90, 132);
  EXPECT_EQ(host_seconds(plan_step(config, cuda_backend(), gpu), 3, 1), 0);
  config.offload = Offload::kParameters, config.zero = 3;
  const StepPlan plan = plan_step(config, cuda_backend(), gpu);
  ASSERT_TRUE(plan.offload);
  double down = 0, up = 0, update = 0;
  for (size_t i = 0; i < plan.offload->trained; ++i) {
    for (const auto& span : plan.offload->buckets[i].gradients) down += static_cast<double>(span.bytes);
    for (const auto& span : plan.offload->buckets[i].copies) up += static_cast<double>(span.bytes);
    update += plan.offload->buckets[i].update->program.cost().bytes;
  }
  EXPECT_GT(down, 0);
  const OffloadTimes times = offload_times(*plan.offload);
  EXPECT_DOUBLE_EQ(times.down, down / 12e9);
  EXPECT_DOUBLE_EQ(times.up, up / 12e9);
  EXPECT_DOUBLE_EQ(times.update, update / 20e9);
  EXPECT_EQ(times.longest(), std::max({times.down, times.up, times.update}));
  const auto held = static_cast<double>(plan.layout->bytes(Home::kLocked, Category::kParameters));
  ASSERT_GT(held, 0);
  const double device_s = held / 12e9, uploads = 2 * 3 * held / 12e9;
  EXPECT_NEAR(host_seconds(plan, 3, device_s), uploads - device_s, 1e-12) << "longer than all else";
  EXPECT_DOUBLE_EQ(host_seconds(plan, 3, 1), times.longest()) << "hidden behind the device's second";
}

TEST(StepFit, SaysWhatIsNeededAndWhatIsThere) {
  TrainConfig config = tiny_config(1);
  config.mesh.dp = 2, config.train.batch = 13;
  const StepPlan plan =
      plan_step(set_up(config, {}, {0, 2, 2}).step, cpu_backend(), planned_cpu_device(1, "avx2"));
  std::vector<int64_t> asked;
  const auto beside = [&](int64_t images) {
    asked.push_back(images);
    return NamedBytes{{"teacher", 5 << 20}};
  };
  const size_t needed = plan.peak_bytes() + (5 << 20);
  EXPECT_NO_THROW(require_step_fits(plan, beside, {needed, "there"}));
  EXPECT_NO_THROW(require_step_fits(plan, beside, {0, "not known"}));
  EXPECT_EQ(asked, (std::vector<int64_t>{7, 7})) << "of 13 images the larger half";
  const Error error = error_of([&] { require_step_fits(plan, beside, {needed - 1, "free here"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  EXPECT_TRUE(
      error.message().starts_with(strf("a step of 7 images needs %s; %s is free here\n",
                                       format_bytes(needed).c_str(), format_bytes(needed - 1).c_str())))
      << error.message();
  EXPECT_NE(error.message().find("teacher"), std::string::npos);
}

TEST(StepFit, TheHostsMemoryIsThatOfAllItsRanks) {
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters}) {
    StepConfig config = set_up(tiny_config(1)).step;
    config.offload = offload, config.zero = offload == Offload::kParameters ? 3 : 0;
    const StepPlan plan = plan_step(config, cuda_backend(), planned_cuda_device("a GPU", 90, 132));
    const size_t each = plan.host_bytes() + 1000;
    EXPECT_NO_THROW(require_host_room(plan, 1000, 2, {2 * each, "free"}));
    EXPECT_NO_THROW(require_host_room(plan, 1000, 2, {0, "not known"}));
    const Error two = error_of([&] { require_host_room(plan, 1000, 2, {2 * each - 1, "free here"}); });
    EXPECT_TRUE(two.message().starts_with(
        strf("mesh.offload=%s needs %s of the host's memory for each of 2 ranks; %s is free here\n",
             enum_name(offload), format_bytes(each).c_str(), format_bytes(2 * each - 1).c_str())))
        << two.message();
    EXPECT_EQ(two.hint(),
              std::string("mesh.offload=none where the device has room; a host with more memory; ") +
                  (offload == Offload::kParameters
                       ? "more ranks on several hosts, each with a smaller piece"
                       : "mesh.zero=1 shares the state out among ranks on several hosts"));
    const Error one = error_of([&] { require_host_room(plan, 1000, 1, {each - 1, "free"}); });
    EXPECT_EQ(one.message().find("for each of"), std::string::npos) << one.message();
    EXPECT_NE(one.message().find("images being loaded"), std::string::npos) << one.message();
  }
}

}  // namespace
}  // namespace vitrail::testing
