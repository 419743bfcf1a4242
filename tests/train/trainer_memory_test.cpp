// What a step is planned to take is what it allocates, to the byte; what does not fit is refused beforehand
// with advice that does.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "data/decode.h"
#include "models/zoo.h"
#include "train/helpers/planned_memory.h"

namespace vitrail::testing {
namespace {

TEST(Memory, AllocatedIsPlanned) {
  int64_t cases = 0;
  for (int64_t depth : {1, 3})
    for (int64_t micro : {1, 6})
      for (ComputeType dtype : {ComputeType::kF32, ComputeType::kBF16, ComputeType::kF16})
        for (const std::string& optimizer : optimizer_names())
          for (const auto& [level, every] : {std::pair<Recompute, int64_t>{Recompute::kNone, 1},
                                             {Recompute::kCheap, 1},
                                             {Recompute::kMlp, 1},
                                             {Recompute::kBlock, 1},
                                             {Recompute::kBlock, 2}}) {
            TrainConfig config = tiny_config(1);
            set_model(config, "depth", [&](VitConfig& m) { m.depth = depth; });
            config.train.batch = config.train.micro_batch = micro;
            config.train.dtype = dtype;
            config.train.recompute = level;
            config.train.recompute_every = every;
            config.train.drop_path = 0.1;
            config.train.eval_batch = 3;
            config.optim.name = optimizer;
            config.optim.ema_decay = cases % 2 ? 0.9 : 0;  // the other two in turn
            config.lora.rank = cases / 2 % 3 == 0 ? 2 : 0;
            SCOPED_TRACE(::testing::Message()
                         << "depth " << depth << " micro " << micro << " " << enum_name(dtype) << " "
                         << optimizer << " " << enum_name(level) << " " << every << " case " << cases);
            expect_as_planned(config, cpu_backend(), cpu_device(1));
            ++cases;
          }
  EXPECT_EQ(cases, 60 * std::ssize(optimizer_names()));
}

TEST(Memory, ARunHoldsWhatItSays) {
  const WorkFolder work;
  const size_t before = sum(allocated_now());
  const auto check = [&](const TrainStatus& status) {
    EXPECT_EQ(sum(allocated_now()) - before, status.memory_bytes);
  };
  train(full_config(4), work / "teacher", {.step = check});
  TrainConfig config = full_config(4);
  config.distill = {DistillKind::kSoft, work / "teacher/best", 0.5, 2};
  train(config, work / "student", {.step = check});
  EXPECT_EQ(sum(allocated_now()), before);
}

// Returns a device with `share` of the memory that the step takes.
std::optional<Error> refusal(const StepPlan& plan, double share, size_t* available) {
  *available = static_cast<size_t>(static_cast<double>(plan.peak_bytes()) * share);
  try {
    require_step_fits(plan, [](int64_t) { return NamedBytes{}; }, {*available});
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(Memory, AdviceReallyFits) {
  TrainConfig config = tiny_config(1);
  set_model(config, "depth", [](VitConfig& m) { m.depth = 4; });
  config.train.batch = config.train.micro_batch = 32;
  const StepConfig step = set_up(config).step;
  // With wider vectors, such a small model would need scratch most of all.
  const DeviceInfo device = planned_cpu_device(1, "avx2");
  const StepPlan plan = plan_step(step, cpu_backend(), device);
  int64_t batches = 0, levels = 0;
  for (double share : {0.95, 0.7, 0.5, 0.3, 0.2}) {
    size_t available = 0;
    const auto error = refusal(plan, share, &available);
    ASSERT_TRUE(error) << share;
    EXPECT_EQ(error->kind(), ErrorKind::kMemory);
    for (const char* row : {"parameters", "gradients", "optimizer", "peak"})
      EXPECT_NE(error->message().find(row), std::string::npos) << error->what();
    const std::string hint = error->hint();
    std::smatch found;
    if (std::regex_search(hint, found, std::regex("micro_batch=(\\d+) with (\\d+) times"))) {
      StepConfig advised = step;
      advised.micro_batch = advised.eval_batch = std::stol(found[1]);
      EXPECT_EQ(advised.micro_batch * std::stol(found[2]), 32) << hint;
      EXPECT_LE(plan_step(advised, cpu_backend(), device).peak_bytes(), available) << hint;
      ++batches;
    }
    for (Recompute level : {Recompute::kMlp, Recompute::kBlock}) {
      if (hint.find(strf("recompute=%s", enum_name(level))) == std::string::npos) continue;
      StepConfig advised = step;
      advised.recompute.level = level;
      EXPECT_LE(plan_step(advised, cpu_backend(), device).peak_bytes(), available) << hint;
      ++levels;
    }
  }
  EXPECT_GE(batches, 3);
  EXPECT_GE(levels, 2);
  size_t available = 0;
  EXPECT_NE(refusal(plan, 0.01, &available)->hint().find("smaller model"), std::string::npos);
  EXPECT_FALSE(refusal(plan, 1, &available));
}

TEST(Memory, ARefusalTellsARanksShareFromTheMachine) {
  const StepPlan plan = plan_step(set_up(tiny_config(1)).step, cpu_backend(), planned_cpu_device(1, "avx2"));
  try {
    require_step_fits(
        plan, [](int64_t) { return NamedBytes{}; }, FreeMemory{plan.peak_bytes()}.shared_by(999));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("is the share of one of 999 ranks in what is free on this machine"),
              std::string::npos)
        << error.message();
    EXPECT_NE(error.hint().find("fewer ranks on this host"), std::string::npos) << error.hint();
  }
}

// A rank has half of the images, in groups of four that are mixed together.
TEST(Memory, RanksAreAdvisedForTheShareOfOne) {
  TrainConfig config = tiny_config(1);
  config.mesh.dp = 2;
  config.train.batch = 32, config.train.micro_batch = 16;
  const StepPlan plan =
      plan_step(set_up(config, {}, {0, 2, 2}).step, cpu_backend(), planned_cpu_device(1, "avx2"));
  std::set<int64_t> advised;
  for (double share = 0.95; share > 0.05; share -= 0.05) {
    const auto available = static_cast<size_t>(share * static_cast<double>(plan.peak_bytes()));
    try {
      require_step_fits(
          plan, [](int64_t) { return NamedBytes{}; }, {available}, 4);
      FAIL() << share;
    } catch (const Error& error) {
      const std::string& hint = error.hint();
      std::smatch found;
      if (!std::regex_search(hint, found, std::regex("micro_batch=(\\d+) with (\\d+) times"))) continue;
      advised.insert(std::stol(found[1]));
      EXPECT_EQ(std::stol(found[1]) * std::stol(found[2]), 16) << hint;
    }
  }
  EXPECT_EQ(advised, (std::set<int64_t>{4, 8}));
}

TEST(Memory, ImagesBeingDecodedCountAndFewerWorkersAreAdvised) {
  const StepPlan plan = plan_step(set_up(tiny_config(1)).step, cpu_backend(), planned_cpu_device(1, "avx2"));
  const size_t decoding = size_t{1} << 30;
  const auto beside = [&](int64_t) { return NamedBytes{{kDecodingRow, decoding}}; };
  EXPECT_NO_THROW(require_step_fits(plan, beside, {plan.peak_bytes() + decoding}));
  try {
    require_step_fits(plan, beside, {plan.peak_bytes() + decoding / 2, "left under a limit"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_NE(error.message().find("is left under a limit"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(kDecodingRow), std::string::npos) << error.message();
    EXPECT_NE(error.hint().find("fewer loader.workers"), std::string::npos) << error.hint();
  }
}

// Images that are stored as pixels need no decoding, and the table of a run's memory has no row for it.
TEST(Memory, OnlyWhatIsDecodedHasARow) {
  const WorkFolder work;
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 8; ++i) {
      std::filesystem::create_directories(work / (std::string("data/train/") + name));
      write_png(work / strf("data/train/%s/%d.png", name, i), Image::blank(8, 8, 3));
    }
  for (const bool files : {false, true}) {
    TrainConfig config = tiny_config(1);
    if (files) config.data.train = "folder:" + (work / "data");
    const size_t decoding = set_up(config).decoding_bytes;
    EXPECT_EQ(decoding > 0, files);
    DeviceInfo device = cpu_device(1);
    device.memory_bytes = 1024;
    RankContext rank(device);
    std::string said;
    try {
      const Trainer refused(config, {work / "run", ResumeMode::kFresh, ""}, cpu_backend(), rank, {});
      ADD_FAILURE() << "a kilobyte was enough";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.what();
      said = error.message();
    }
    EXPECT_NE(said.find("; 1.00 KiB is all that " + device.name + " has\n"), std::string::npos) << said;
    EXPECT_NE(said.find("batches being loaded"), std::string::npos) << said;
    EXPECT_EQ(said.find(kDecodingRow) != std::string::npos, files) << said;
  }
}

TEST(Memory, ALargeEvaluationBatchIsPartOfTheAdvice) {
  TrainConfig config = tiny_config(1);
  config.train.batch = config.train.micro_batch = 8;
  config.train.eval_batch = 2000;
  const StepPlan plan = plan_step(set_up(config).step, cpu_backend(), cpu_device(1));
  size_t available = 0;
  const auto error = refusal(plan, 0.5, &available);
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->hint().starts_with("train.eval_batch=8 needs ")) << error->hint();
  EXPECT_NE(error->hint().find("micro_batch=4 with 2 times the accumulation fits when train.eval_batch=4"),
            std::string::npos)
      << error->hint();
}

TEST(Memory, ADatasetKeptOnTheDeviceIsPartOfTheAdvice) {
  StepConfig step = set_up(tiny_config(1)).step;
  step.images = ImageForm::kStored;
  step.stored_images = 1 << 20;
  size_t available = 0;
  const StepPlan plan = plan_step(step, cpu_backend(), cpu_device(1));
  EXPECT_NE(refusal(plan, 1e-4, &available)->hint().find("beside the dataset"), std::string::npos);
  const auto error = refusal(plan, 0.5, &available);
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->hint().starts_with("loader.on_device=images needs ")) << error->hint();
  step.images = ImageForm::kPixels;
  EXPECT_LE(plan_step(step, cpu_backend(), cpu_device(1)).peak_bytes(), available);
}

// Some terabytes: a test that allocated them would not survive.
TEST(Memory, ARunThatDoesNotFitIsRefusedBeforeItBegins) {
  const WorkFolder work;
  TrainConfig config;
  config.model.arch = "vit_large_patch16_384";
  config.data.train = "synthetic:3x8x8x4x40";
  config.train.batch = config.train.micro_batch = 4096;
  config.train.steps = 1;
  config.loader.prefetch = 1;
  const size_t before = sum(allocated_now());
  Ran ran;
  const Error error = train_error(ran, config, work / "run");
  EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.what();
  EXPECT_EQ(sum(allocated_now()), before);
  EXPECT_TRUE(CheckpointStore(work / "run").steps().empty());
  EXPECT_FALSE(std::filesystem::exists(work / "run/metrics.jsonl"));
}

}  // namespace
}  // namespace vitrail::testing
