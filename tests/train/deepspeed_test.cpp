// DeepSpeed files: keys become settings, the batch follows DeepSpeed's rules, and what is no DeepSpeed file
// is refused with its place.
#include "train/deepspeed/deepspeed.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "source_root.h"
#include "temp_folder.h"
#include "train/deepspeed/keys.h"
#include "train/helpers/deepspeed_reading.h"

namespace vitrail::testing {
namespace {

constexpr size_t kMost = 1 << 22;

std::string golden(const std::string& name) {
  return read_file(std::string(VT_SOURCE_DIR) + "/tests/golden/" + name, kMost);
}

TEST(DeepSpeed, TriplesFollowDeepSpeedsRules) {
  struct Row {
    BatchTriple given;
    int64_t world;
    BatchTriple complete;  // zeros: refused
  };
  const Row rows[] = {{{32, 0, 0}, 2, {32, 16, 1}},
                      {{32, 16, 0}, 1, {32, 16, 2}},
                      {{32, 0, 2}, 2, {32, 8, 2}},
                      {{0, 16, 2}, 3, {96, 16, 2}},
                      {{0, 16, 0}, 8, {128, 16, 1}},
                      {{32, 16, 1}, 2, {32, 16, 1}},
                      {{32, 0, 0}, 3, {}},
                      {{32, 16, 1}, 1, {}},
                      {{0, 0, 4}, 1, {}},
                      {{0, 0, 0}, 1, {}},
                      {{2, 0, 0}, 3, {}},
                      {{32, 64, 0}, 1, {}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(
        strf("%lld %lld", static_cast<long long>(row.given.batch), static_cast<long long>(row.world)));
    if (row.complete.batch == 0) {
      EXPECT_THROW(complete_triple(row.given, row.world, "ds.json"), Error);
      continue;
    }
    const BatchTriple t = complete_triple(row.given, row.world, "ds.json");
    EXPECT_EQ(t.batch, row.complete.batch);
    EXPECT_EQ(t.micro, row.complete.micro);
    EXPECT_EQ(t.accumulation, row.complete.accumulation);
  }
}

TEST(DeepSpeed, AppendixBTellsWhatItsOddKeysMean) {
  const DeepSpeedReading reading = translated(golden("deepspeed/seed-003-appendix-b.json"), with_batch(0, 1));
  EXPECT_NE(text_of(reading, "micro_batch_per_gpu").find("32 / 1 rank / 1 accumulation = 32"),
            std::string::npos);
  EXPECT_NE(text_of(reading, "pin_memory").find("no effect"), std::string::npos);
  EXPECT_TRUE(reading.config.train.breakdown);
  EXPECT_EQ(reading.config.mesh.zero, 0);
}

// Every key that is read, as the setting that it becomes.
TEST(DeepSpeed, KeysBecomeSettings) {
  struct Row {
    const char *text, *key, *value;
  };
  const Row rows[] = {
      {R"("gradient_clipping": 0.5)", "optim.clip_norm", "0.5"},
      {R"("steps_per_print": 7)", "train.log_every", "7"},
      {R"("steps_per_print": 1e10)", "train.log_every", "10000000000"},
      {R"("tensorboard": {"enabled": false})", "train.tensorboard", "false"},
      {R"("bf16": {"enabled": true})", "train.dtype", "\"bf16\""},
      {R"("bfloat16": {"enabled": true})", "train.dtype", "\"bf16\""},
      {R"("fp16": {"enabled": true})", "train.dtype", "\"f16\""},
      {R"("fp16": {"enabled": true})", "loss_scale.hysteresis", "2"},
      {R"("fp16": {"enabled": true})", "loss_scale.window", "1000"},
      {R"("fp16": {"enabled": true, "initial_scale_power": 10})", "loss_scale.initial", "1024.0"},
      {R"("fp16": {"enabled": true, "loss_scale": 128})", "loss_scale.mode", "\"fixed\""},
      {R"("fp16": {"enabled": true, "min_loss_scale": 4})", "loss_scale.min", "4.0"},
      {R"("fp16": {"enabled": true, "consecutive_hysteresis": true})", "loss_scale.consecutive", "true"},
      {R"("zero_optimization": {"stage": 3})", "mesh.zero", "3"},
      {R"("zero_optimization": true)", "mesh.zero", "1"},
      {R"("zero_optimization": {"stage": 1, "reduce_bucket_size": 2621440})", "mesh.bucket_mb", "10.0"},
      {R"("pipeline": {"activation_checkpoint_interval": 2})", "train.recompute_every", "2"},
      {R"("activation_checkpointing": {"cpu_checkpointing": true})", "train.recompute", "\"block\""},
      {R"("optimizer": {"type": "Adam"})", "optim.name", "\"adamw\""},
      {R"("optimizer": {"type": "Adam", "params": {"adam_w_mode": false}})", "optim.name", "\"adam\""},
      {R"("optimizer": {"type": "AdamW", "params": {"torch_adam": true}})", "optim.weight_decay", "0.01"},
      {R"("optimizer": {"type": "AdamW", "params": {"betas": [0.8, 0.95]}})", "optim.beta2", "0.95"},
      {R"("optimizer": {"type": "SGD", "params": {"lr": 0.1}})", "optim.momentum", "0.0"},
      {R"("optimizer": {"type": "SGD", "params": {"momentum": 0.5, "nesterov": true}})", "optim.nesterov",
       "true"},
      {R"("optimizer": {"type": "Lamb", "params": {"max_coeff": 0.3}})", "optim.trust_max", "0.3"},
      {R"("optimizer": {"type": "Lamb"})", "optim.trust_min", "0.01"},
      {R"("optimizer": {"type": "Lamb", "params": {"bias_correction": false}})", "optim.bias_correction",
       "false"},
      {R"("optimizer": {"type": "Lion"})", "optim.beta2", "0.99"},
      {R"("optimizer": {"type": "Lion"})", "schedule.kind", "\"constant\""},
      {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.01}})", "optim.lr", "0.01"},
      {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}})", "schedule.warmup", "5.0"},
      {R"("scheduler": {"type": "WarmupLR"})", "schedule.warmup_shape", "\"log\""},
      {R"("scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 50}})", "schedule.length",
       "50.0"},
      {R"("scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 50, "cos_min_ratio": 0.5}})",
       "schedule.min_lr", "0.0005"}};
  for (const Row& row : rows) {
    const auto reading = translated(strf("{\"train_batch_size\": 8, %s}", row.text));
    EXPECT_TRUE(reading.refused.empty()) << row.text;
    EXPECT_EQ(setting_of(reading, row.key).dump(), row.value) << row.text;
  }
}

TEST(DeepSpeed, WhatIsNoSuchFileIsRefusedWithItsPlace) {
  struct Row {
    std::string text, names;
  };
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const Row rows[] = {
      {"{\"train_batch_size\": 8", "ds.json:1:"},
      {"hello", "ds.json:1:"},
      {"[1]", "array"},
      // Both are Hjson, which DeepSpeed reads: a comma too many, one too few.
      {R"({"train_batch_size": 8, "wall_clock_breakdown": false, })", "ds.json:1:"},
      {"{\"fp16\": {\"enabled\": false}\n\"train_batch_size\": 8}", "ds.json:2:"},
      {R"({"train_batch_size": 8, "train_batch_size": 9})", "train_batch_size"},
      {R"({"train_batch_size": 1e999})", "ds.json:1:"},
      {R"({"train_batch_size": 99999999999999999999999})", "ds.json:1:"},
      {R"({"train_batch_size": 9007199254740993})", "train_batch_size"},
      {R"({"train_batch_size": -8})", "train_batch_size is -8"},
      {R"({"train_batch_size": "8"})", "train_batch_size"},
      {R"({"train_batch_size": 8.5})", "train_batch_size is 8.5"},
      {R"({"train_batch_size": "auto"})", "nothing says how large a batch is"},
      {R"({"gradient_accumulation_steps": 2})", "nothing says how large a batch is"},
      {R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})", "zero_optimization.stage is 4"},
      {R"({"train_batch_size": 8, "zero_optimization": 2})", "zero_optimization is 2"},
      {R"({"train_batch_size": 8, "fp16": []})", "fp16"},
      {R"({"train_batch_size": 8, "fp16": {"enabled": 1}})", "fp16.enabled is 1"},
      {R"({"train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 5000}})",
       "fp16.initial_scale_power is 5000"},
      {R"({"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}})", "both"},
      {R"({"train_batch_size": 8, "optimizer": {"params": {}}})", "optimizer.type is missing"},
      {R"({"train_batch_size": 8, "optimizer": {"type": "auto"}})", "optimizer.type"},
      {R"({"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"betas": [1]}}})", "betas"},
      {R"({"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR"}})", "total_num_steps is missing"},
      {R"({"train_batch_size": 8, "x": )" + deep + "}", "ds.json:1:"},
      {"{\"x\": \"" + std::string(1 << 20, 'x') + "\"}", "ds.json"}};
  for (const Row& row : rows) {
    const Error error = error_of(row.text);
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << row.text.substr(0, 80) << error.what();
    EXPECT_NE(std::string(error.what()).find(row.names), std::string::npos) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 1000U);
  }
}

TEST(DeepSpeed, KeysThatWouldChangeTheResultAreRefusedByName) {
  for (const auto& [text, key] : std::vector<std::pair<std::string, std::string>>{
           {R"("zero_optimization": {"stge": 1})", "zero_optimization.stge"},
           {R"("zero_optimization": {"stage": 3, "zero_quantized_weights": true})",
            "zero_optimization.zero_quantized_weights"},
           {R"("communication_data_type": "fp16")", "communication_data_type"},
           {R"("optimizer": {"type": "Adagrad"})", "optimizer.type"},
           {R"("optimizer": {"type": "AdamW", "params": {"amsgrad": true}})", "optimizer.params.amsgrad"},
           {R"("optimizer": {"type": "AdamW", "params": {"momentum": 0.9}})", "optimizer.params.momentum"},
           {R"("scheduler": {"type": "OneCycle"})", "scheduler.type"},
           {R"("optimizer": {"type": "AdamW", "params": {"lr": 0.01}}, "scheduler": {"type": "WarmupLR"})",
            "scheduler.params.warmup_max_lr"}}) {
    const auto reading = translated("{\"train_batch_size\": 8, " + text + "}");
    EXPECT_EQ(keys_of(reading.refused), std::set<std::string>{key}) << text;
  }
  const TempFolder folder;
  const std::string path =
      folder.file("ds.json", R"({"train_batch_size": 8, "amp": {"enabled": true}, "elasticity": {"a": 1}})");
  try {
    read_deepspeed(path, {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.message().find("amp: "), std::string::npos);
    EXPECT_NE(error.message().find("elasticity: "), std::string::npos);
  }
}

TEST(DeepSpeed, RanksThatShareImagesSumAsF32) {
  const char* path = "seq_parallel_communication_data_type";
  const std::string text =
      strf(R"({"train_batch_size": 8, "sequence_parallel_size": 2, "%s": "bf16"})", path);
  EXPECT_EQ(keys_of(translated(text, with_batch(0, 2)).refused), std::set<std::string>{path});
}

TEST(DeepSpeed, BoundsAreWrittenInFullAndOddValuesAreNamed) {
  const Error large = error_of(R"({"train_batch_size": 2000000})");
  EXPECT_EQ(large.hint(), "expected a whole number from 1 to 1048576") << large.what();
  const Error set = error_of("{}", with_batch(2'000'000, 1));
  EXPECT_EQ(set.hint(), "expected 1 to 1048576") << set.what();
  for (const char* value : {"[]", "\"no\""}) {
    const auto reading = translated(R"({"train_batch_size": 4, "elasticity": )" + std::string(value) + "}");
    EXPECT_NE(text_of(reading, "elasticity").find("elasticity has no effect"), std::string::npos) << value;
  }
  EXPECT_EQ(text_of(translated(R"({"train_batch_size": 4, "elasticity": {"enabled": false}})"), "elasticity"),
            "");
}

TEST(DeepSpeed, AutoIsTheConfigsValueAndIsShown) {
  DeepSpeedBase base = with_batch(48, 2);
  base.config.optim.lr = 0.25;
  base.config.optim.clip_norm = 3;
  base.config.train.dtype = ComputeType::kBF16;
  const auto reading = translated(
      R"({"train_batch_size": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
          "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}})",
      base);
  EXPECT_EQ(reading.config.train.batch, 48);
  EXPECT_EQ(reading.config.optim.lr, 0.25);
  EXPECT_EQ(reading.config.optim.clip_norm, 3);
  EXPECT_EQ(reading.config.train.dtype, ComputeType::kBF16);
  for (const auto& [key, shown] :
       std::vector<std::pair<std::string, std::string>>{{"gradient_clipping", "3"},
                                                        {"optimizer.params.lr", "0.25"},
                                                        {"bf16.enabled", "on"},
                                                        {"train_batch_size", "48"}})
    EXPECT_NE(text_of(reading, key).find(shown), std::string::npos) << key;
}

TEST(DeepSpeed, StandsAboveTheConfigAndBelowTheCommandLine) {
  DeepSpeedBase base = with_batch(64, 1);
  base.config.optim.lr = 0.25;
  const std::string text =
      R"({"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0.5}}})";
  base.given_by = [](const std::string& key) {
    return key == "optim.lr" ? GivenBy::kCommand : GivenBy::kConfig;
  };
  auto reading = translated(text, base);
  EXPECT_EQ(reading.config.optim.lr, 0.25);
  EXPECT_NE(text_of(reading, "optimizer.params.lr").find("gives way"), std::string::npos);
  EXPECT_EQ(reading.config.train.batch, 8);
  EXPECT_NE(text_of(reading, "train_batch_size").find("replaces train.batch=64"), std::string::npos);
  base.given_by = [](const std::string& key) {
    return key == "train.batch" ? GivenBy::kCommand : GivenBy::kConfig;
  };
  reading = translated(text, base);
  EXPECT_EQ(reading.config.optim.lr, 0.5);
  EXPECT_EQ(reading.config.train.batch, 64);
}

TEST(DeepSpeed, ChangedSettingsGiveTheSameConfig) {
  const auto reading = translated(golden("deepspeed/cifar-bf16.json"), with_batch(0, 2));
  const Json changed = changed_settings(reading.config);
  EXPECT_EQ(to_json(train_config_from_json(changed, "again")), to_json(reading.config));
  EXPECT_FALSE(changed.contains("augment"));
}

}  // namespace
}  // namespace vitrail::testing
