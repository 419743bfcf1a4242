#include "api/engine.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/wrapped_device.h"
#include "golden_cases.h"
#include "models/vit_params.h"
#include "models/zoo.h"
#include "runtime/rank_context.h"

namespace vitrail {
namespace {

VitConfig small_vit() {
  VitConfig c;
  c.image_height = 32;
  c.image_width = 48;
  c.patch = 8;
  c.width = 48;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 96;
  c.classes = 7;
  return c;
}

TEST(Engine, AnImageGetsTheSameAnswerAloneAndInABatch) {
  const std::vector<float> three = golden::images(small_vit(), 3);
  Engine batched(small_vit(), {.batch = 3}), single(small_vit(), {});
  batched.run(three, 3);
  const std::vector<float> together = batched.output("logits");
  for (size_t i = 0; i < 3; ++i) {
    single.run(std::span(three).subspan(i * single.image_elems(), single.image_elems()), 1);
    const std::vector<float> alone = single.output("logits");
    for (size_t k = 0; k < alone.size(); ++k)
      EXPECT_EQ(alone[k], together[i * alone.size() + k]) << i << " " << k;
  }
}

// A classifier's last block computes the class token alone; with the layers as outputs, all tokens.
TEST(Engine, TheClassTokenAloneGetsTheSameAnswer) {
  void (*const changes[])(VitConfig&) = {
      [](VitConfig&) {},
      [](VitConfig& c) { c.layer_scale = c.qk_norm = true; },
      [](VitConfig& c) { c.norm_place = NormPlace::kAfterPool; },
      [](VitConfig& c) { c.registers = 2, c.pos_for_prefix = false; },
      [](VitConfig& c) { c.pre_logits = true; },
  };
  for (const auto change : changes)
    for (const Arithmetic arithmetic : {Arithmetic::kExact, Arithmetic::kBF16, Arithmetic::kInt8}) {
      VitConfig config = small_vit();
      change(config);
      for (const bool fuse : {true, false}) {
        Engine alone(config, {.threads = 3, .batch = 2, .arithmetic = arithmetic, .fuse = fuse});
        Engine whole(config,
                     {.threads = 1, .batch = 2, .arithmetic = arithmetic, .fuse = fuse, .layers = true});
        for (Engine* engine : {&alone, &whole}) engine->run(golden::images(config, 2), 2);
        const std::vector<float> found = alone.output("logits"), wanted = whole.output("logits");
        // In f32 the last attention is computed from the tokens themselves, which rounds elsewhere.
        const bool rearranged = fuse && arithmetic == Arithmetic::kExact && !config.qk_norm;
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], rearranged ? 2e-6f : 0.0f);
        EXPECT_LT(alone.plan().program.cost().flops, whole.plan().program.cost().flops);
      }
    }
}

TEST(Engine, AShorterBatchIsPaddedAndOnlyItsRowsComeBack) {
  const std::vector<float> two = golden::images(small_vit(), 2);
  Engine engine(small_vit(), {.batch = 4}), exact(small_vit(), {.batch = 2});
  engine.run(two, 2);
  exact.run(two, 2);
  EXPECT_EQ(engine.output("logits"), exact.output("logits"));
  EXPECT_THROW(engine.run(two, 5), Error);
  EXPECT_THROW(engine.run(std::span(two).first(10), 2), Error);
}

TEST(Engine, ProbabilitiesAndAttentionRowsSumToOne) {
  Engine engine(small_vit(), {.attention = true, .probabilities = true});
  engine.run(golden::images(small_vit(), 1), 1);
  double sum = 0;
  for (float p : engine.output("probs")) sum += static_cast<double>(p);
  EXPECT_NEAR(sum, 1.0, 1e-6);
  const int64_t tokens = small_vit().tokens();
  const std::vector<float> attention = engine.output("blocks.1.attention");
  ASSERT_EQ(attention.size(), static_cast<size_t>(3 * tokens * tokens));
  for (size_t row = 0; row < attention.size() / tokens; ++row) {
    double total = 0;
    for (int64_t j = 0; j < tokens; ++j) total += static_cast<double>(attention[row * tokens + j]);
    ASSERT_NEAR(total, 1.0, 1e-5);
  }
}

TEST(Engine, TurningParallelismOffChangesNoBit) {
  const std::vector<float> images = golden::images(small_vit(), 1);
  Engine all(small_vit(), {.threads = 3});
  all.run(images, 1);
  for (int off = 0; off < 3; ++off) {
    Engine some(
        small_vit(),
        {.threads = 3, .parallel_heads = off != 0, .parallel_rows = off != 1, .parallel_softmax = off != 2});
    some.run(images, 1);
    EXPECT_EQ(some.output("logits"), all.output("logits")) << off;
  }
}

TEST(Engine, WhatDoesNotFitIsRefusedBeforeItIsAllocated) {
  try {
    Engine engine(find_architecture("vit_large_patch16_224").config, {.batch = 1 << 20});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_TRUE(error.hint().starts_with("batch ")) << error.what();
  }
}

TEST(Engine, PlanningAllocatesNothing) {
  size_t before = 0, after = 0;
  for (size_t i = 0; i < kCategoryCount; ++i) before += Buffer::allocated(static_cast<Category>(i));
  const ExecutionPlan plan = plan_inference(find_architecture("vit_huge_patch14_224").config, {.batch = 64});
  for (size_t i = 0; i < kCategoryCount; ++i) after += Buffer::allocated(static_cast<Category>(i));
  EXPECT_EQ(before, after);
  EXPECT_GT(plan.memory.persistent_bytes, 632'045'800u * 4);
}

// Predicted bytes are the bytes of the arenas, for real architectures too.
TEST(Engine, HoldsExactlyThePlannedBytes) {
  for (const char* arch :
       {"vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "vit_small_patch32_224"})
    for (int64_t batch : {1, 4}) {
      const VitConfig& config = find_architecture(arch).config;
      const size_t planned = plan_inference(config, {.batch = batch}).memory.peak_bytes();
      const size_t before =
          Buffer::allocated(Category::kParameters) + Buffer::allocated(Category::kTransient);
      const Engine engine(config, {.batch = batch});
      EXPECT_EQ(Buffer::allocated(Category::kParameters) + Buffer::allocated(Category::kTransient) - before,
                planned)
          << arch << " batch " << batch;
    }
}

// The libraries' names of intermediate values and ours.
std::string our_name(const std::string& name) {
  if (name == "pooled") return "features";
  if (name.starts_with("block")) return "blocks." + name.substr(5);
  if (name.starts_with("probs")) return "blocks." + name.substr(5) + ".attention";
  return name;
}

// Intermediate activations of the libraries: a first layer that went wrong has a name.
TEST(Engine, LayersAgreeWithTheLibrariesOneByOne) {
  int compared = 0;
  for (const auto& path : golden::all_cases()) {
    const golden::Case c = golden::load(path);
    if (!c.json.contains("activations")) continue;
    Engine engine(golden::RuleModel(c),
                  {.batch = c.batch, .features = true, .layers = true, .attention = true});
    engine.run(golden::images(c.config, c.batch), c.batch);
    for (const auto& [name, activation] : c.json["activations"].items()) {
      // For a distilled model the golden holds the class token; ours, like timm's pre_logits, is the mean of
      // both.
      if (name == "pooled" && c.config.distilled) continue;
      const std::vector<float> found = engine.output(our_name(name));
      const auto wanted = activation.at("values").get<std::vector<double>>();
      EXPECT_LT(golden::largest_difference(found, wanted), 1e-4) << c.name << " " << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 20);
}

TEST(Engine, TheAttentionOfOneBlockIsGivenAlone) {
  const VitConfig config = small_vit();
  Engine all(config, {.attention = true}), one(config, {.attention = true, .attention_block = 0});
  for (Engine* engine : {&all, &one}) engine->run(golden::images(config, 1), 1);
  EXPECT_TRUE(all.has_output("blocks.0.attention") && all.has_output("blocks.1.attention"));
  EXPECT_FALSE(one.has_output("blocks.1.attention"));
  EXPECT_EQ(one.output("blocks.0.attention"), all.output("blocks.0.attention"));
}

TEST(Engine, WhatTheCallerHoldsBesideItCounts) {
  EXPECT_NO_THROW(Engine(small_vit(), {.beside = {.batches_bytes = 1 << 20}}));
  try {
    Engine engine(small_vit(), {.beside = {.decoder_bytes = size_t{1} << 50, .decoders = 1}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_NE(error.message().find("images being decoded 1073741824.0 MiB"), std::string::npos)
        << error.message();
    EXPECT_EQ(error.hint().find("batch "), std::string::npos) << "no batch makes room for them";
  }
}

// A device that records, and does the work all the same; its replays do nothing.
class ReplayingDevice : public WrappedDevice {
 public:
  bool records() const override { return true; }
  std::unique_ptr<Recording> end_recording() override { return std::make_unique<Nothing>(); }

 private:
  struct Nothing : Recording {
    void replay() override {}
  };
};

// What is replayed has no times of its nodes, unless they are asked for.
TEST(Engine, NodesOfARecordingAreTimedWhereThatIsWanted) {
  RankContext rank(cpu_device(1), std::make_unique<ReplayingDevice>());
  Engine engine(small_vit(), {.rank = &rank});
  const std::vector<float> images = golden::images(small_vit(), 1);
  const auto runs_after = [&](int runs) {
    for (int i = 0; i < runs; ++i) engine.run(images, 1);
    return engine.executor().times()[0].runs;
  };
  EXPECT_EQ(runs_after(3), 0);
  EXPECT_EQ(engine.executor().recordings(), 1u);
  engine.time_nodes(true);
  EXPECT_EQ(runs_after(2), 2);
  engine.time_nodes(false);
  EXPECT_EQ(runs_after(2), 2);
  engine.time_nodes(true);
  engine.reset_times();
  EXPECT_EQ(runs_after(1), 1);
  Engine here(small_vit(), {.threads = 1});
  here.time_nodes(false);
  here.run(images, 1);
  EXPECT_EQ(here.executor().times()[0].runs, 1) << "on a processor times cost nothing";
}

// Inference keeps weights and biases of GEMMs in the type that it computes in, and nothing of them in
// another.
TEST(Engine, WeightsAreHeldInTheTypeOfTheirGemmsAlone) {
  const VitConfig config = find_architecture("vit_tiny_patch16_224").config;
  const DeviceInfo gpu = planned_cuda_device("synthetic", 90);
  for (const DType compute : {DType::kF32, DType::kBF16, DType::kF16}) {
    const ExecutionPlan plan = plan_inference(config, {.backend = "cuda", .compute = compute}, gpu);
    size_t gemms = 0, persistent = 0;
    for (const Value& value : plan.program.values) {
      if (!value.persistent()) continue;
      ++persistent;
      const bool norm = value.name.find("norm") != std::string::npos;
      if (norm || !value.name.starts_with("blocks.")) continue;
      EXPECT_EQ(value.desc.dtype, compute) << value.name;
      ++gemms;
    }
    EXPECT_EQ(gemms, 12u * 8) << "weights and biases of qkv, proj, fc1 and fc2";
    EXPECT_EQ(persistent, vit_params(config).size()) << "one of each";
  }
}

// The features follow timm's pre_logits of a distilled model.
TEST(Engine, TheFeaturesOfADistilledModelAreTheMeanOfBothTokens) {
  VitConfig config = small_vit();
  config.distilled = true;
  Engine engine(config, {.batch = 2, .features = true, .layers = true});
  engine.run(golden::images(config, 2), 2);
  const std::vector<float> features = engine.output("features"), tokens = engine.output("tokens");
  const auto width = static_cast<size_t>(config.width), each = tokens.size() / 2;
  ASSERT_EQ(features.size(), 2 * width);
  ASSERT_EQ(each, static_cast<size_t>(config.tokens()) * width);
  for (size_t i = 0; i < features.size(); ++i) {
    const float* const own = tokens.data() + i / width * each + i % width;
    EXPECT_FLOAT_EQ(features[i], (own[0] + own[width]) / 2) << i;
  }
}

}  // namespace
}  // namespace vitrail
