// DeepSpeed files by the value: defaults, the ends of ranges, what is refused and what is told.
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "source_root.h"
#include "temp_folder.h"
#include "train/deepspeed/keys.h"
#include "train/helpers/deepspeed_reading.h"

namespace vitrail::testing {
namespace {

std::string batch_and(const std::string& text) {
  return R"({"train_batch_size": 8, )" + text + "}";
}

// A setting that each text leads to; a row without a text has that of the row before.
constexpr struct {
  const char *text, *key, *value;
} kSettings[] = {
    {R"("fp16": {"enabled": true})", "loss_scale.initial", "65536"},
    {"", "loss_scale.min", "1"},
    {"", "loss_scale.mode", "\"dynamic\""},
    {"", "loss_scale.max", "85070591730234615865843651857942052864.0"},  // 2^126
    {"", "loss_scale.consecutive", "false"},
    {R"("fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 7})", "loss_scale.initial", "128"},
    {"", "loss_scale.min", "1"},
    {"", "loss_scale.max", "16777216"},
    {"", "loss_scale.window", "2000"},
    {R"("fp16": {"enabled": true, "loss_scale": 0.5})", "loss_scale.min", "0.5"},
    {R"("fp16": {"enabled": true, "loss_scale": 33554432})", "loss_scale.max", "33554432"},
    {R"("fp16": {"enabled": true, "initial_scale_power": -2, "min_loss_scale": 4, "loss_scale_window": 7,
           "hysteresis": 3})",
     "loss_scale.min", "0.25"},
    {"", "loss_scale.window", "7"},
    {"", "loss_scale.hysteresis", "3"},
    {R"("fp16": {"enabled": false, "loss_scale": 128})", "loss_scale.mode", "\"auto\""},
    {"", "train.dtype", "\"f32\""},
    {R"("gradient_clipping": 0)", "optim.clip_norm", "0"},
    {R"("wall_clock_breakdown": true)", "train.breakdown", "true"},
    {R"("zero_optimization": false)", "mesh.zero", "0"},
    {R"("zero_optimization": {"reduce_bucket_size": 2621440})", "mesh.bucket_mb", "0"},
    {"", "mesh.zero", "0"},
    {R"("zero_optimization": {"stage": 2, "reduce_bucket_size": 1e18})", "mesh.bucket_mb", "1048576"},
    {R"("zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}})", "mesh.offload",
     "\"optimizer\""},
    {R"("zero_optimization": {"stage": 2, "cpu_offload": true})", "mesh.offload", "\"optimizer\""},
    {R"("zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}})", "mesh.offload",
     "\"parameters\""},
    {R"("zero_optimization": {"stage": 3, "cpu_offload_param": true, "cpu_offload": true})", "mesh.offload",
     "\"parameters\""},
    {R"("zero_optimization": {"stage": 3, "cpu_offload_params": true})", "mesh.offload", "\"parameters\""},
    {R"("zero_optimization": {"stage": 3, "offload_param": {"device": "none"}})", "mesh.offload", "\"none\""},
    {R"("activation_checkpointing": {"partition_activations": true})", "train.recompute", "\"block\""},
    {R"("activation_checkpointing": {"number_checkpoints": 1})", "train.recompute", "\"block\""},
    {R"("activation_checkpointing": {"number_checkpoints": 0})", "train.recompute", "\"none\""},
    {R"("activation_checkpointing": {"number_checkpoints": true})", "train.recompute", "\"none\""},
    {R"("pipeline": {"activation_checkpoint_interval": 2})", "train.recompute", "\"block\""},
    {R"("pipeline": {"activation_checkpoint_interval": 0, "stages": "auto"})", "train.recompute", "\"none\""},
    {"", "mesh.pp", "1"},
    {R"("tensor_parallel": {"autotp_size": 0})", "mesh.tp", "1"},
    {R"("optimizer": {"type": "ADAM"})", "optim.lr", "0.001"},
    {"", "optim.eps", "1e-8"},
    {"", "optim.beta1", "0.9"},
    {"", "optim.beta2", "0.999"},
    {"", "optim.weight_decay", "0"},
    {"", "optim.bias_correction", "true"},
    {"", "optim.decay", "\"usual\""},
    {R"("optimizer": {"type": "Adam", "params": {"torch_adam": true}})", "optim.weight_decay", "0.01"},
    {R"("optimizer": {"type": "Adam", "params": {"torch_adam": true, "adam_w_mode": false}})",
     "optim.weight_decay", "0"},
    {R"("optimizer": {"type": "AdamW", "params": {"adam_w_mode": false, "betas": [0.8, 0.95], "eps": 1,
           "weight_decay": 0.3}})",
     "optim.name", "\"adamw\""},
    {"", "optim.beta1", "0.8"},
    {"", "optim.eps", "1"},
    {"", "optim.weight_decay", "0.3"},
    {R"("optimizer": {"type": "Lamb", "params": {"min_coeff": 0.02}})", "optim.trust_max", "10"},
    {"", "optim.trust_min", "0.02"},
    {"", "optim.name", "\"lamb\""},
    {"", "optim.adapt_all", "true"},
    {"", "optim.eps", "1e-8"},
    {R"("optimizer": {"type": "Lion"})", "optim.beta1", "0.9"},
    {"", "optim.name", "\"lion\""},
    {R"("optimizer": {"type": "SGD", "params": {"momentum": 0.5}})", "optim.momentum", "0.5"},
    {"", "optim.nesterov", "false"},
    {"", "optim.name", "\"sgd\""},
    {"", "optim.beta1", "-1"},
    {"", "optim.eps", "-1"},
    {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0.0005, "warmup_type": "linear"}})",
     "schedule.kind", "\"warmup\""},
    {"", "schedule.warmup_lr", "0.0005"},
    {"", "schedule.min_lr", "0.0005"},
    {"", "schedule.warmup", "1000"},
    {"", "schedule.warmup_shape", "\"linear\""},
    {"", "schedule.length", "0"},
    {"", "optim.lr", "0.001"},
    {R"("optimizer": {"type": "AdamW", "params": {"lr": 0.5}},
          "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9, "warmup_num_steps": 0}})",
     "optim.lr", "0.001"},
    {"", "schedule.kind", "\"warmup_decay\""},
    {"", "schedule.warmup", "0"},
    {"", "schedule.length", "9"},
    {R"("optimizer": {"type": "AdamW", "params": {"lr": 0.5}},
          "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": "auto", "warmup_min_ratio": 0.5}})",
     "schedule.kind", "\"warmup_cosine\""},
    {"", "schedule.warmup_lr", "0.25"},
    {"", "schedule.min_lr", "0.00005"},
    {"", "schedule.length", "0"},
    {"", "optim.lr", "0.5"}};

TEST(DeepSpeedFacts, SettingsAndTheirDefaults) {
  std::string text;
  for (const auto& row : kSettings) {
    if (*row.text) text = row.text;
    const DeepSpeedReading reading = translated(batch_and(text));
    EXPECT_TRUE(reading.refused.empty()) << text;
    EXPECT_EQ(setting_of(reading, row.key), Json::parse(row.value)) << row.key << " of " << text;
  }
}

TEST(DeepSpeedFacts, MeshesHaveRanks) {
  for (const auto& [text, key] : {std::pair{R"("tensor_parallel": {"autotp_size": 2})", "mesh.tp"},
                                  {R"("sequence_parallel_size": 2)", "mesh.sp"},
                                  {R"("pipeline": {"stages": 2})", "mesh.pp"}}) {
    const DeepSpeedReading reading = translated(batch_and(text), with_batch(0, 4));
    EXPECT_EQ(setting_of(reading, key), 2) << text;
    EXPECT_EQ(reading.config.train.micro_batch, 4) << "8 images of 4 ranks, two of which share theirs";
  }
}

// A file that says how large a batch is leaves nothing of it to the config; one that does not leaves all that
// it does not say.
TEST(DeepSpeedFacts, AFileWithABatchIsNotMixedWithTheConfigs) {
  using Triple = std::array<int64_t, 3>;  // batch, micro-batch, accumulation
  const struct {
    const char* text;
    Triple config, wanted;
  } rows[] = {{R"("train_batch_size": 32)", {8, 4, 2}, {32, 32, 1}},
              {R"("train_batch_size": 32, "gradient_accumulation_steps": 4)", {8, 4, 2}, {32, 8, 4}},
              {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 8)", {8, 4, 2}, {32, 8, 4}},
              {R"("train_micro_batch_size_per_gpu": 4)", {24, 2, 3}, {4, 4, 1}},
              {R"("gradient_accumulation_steps": 2)", {8, 4, 0}, {8, 4, 2}},
              {R"("gradient_accumulation_steps": 2)", {8, 0, 0}, {8, 4, 2}},
              {R"("gradient_accumulation_steps": 2)", {0, 3, 0}, {6, 3, 2}},
              {R"("gradient_clipping": 1)", {8, 2, 0}, {8, 2, 4}}};
  for (const auto& row : rows) {
    DeepSpeedBase base = with_batch(row.config[0], 1);
    base.config.train.micro_batch = row.config[1], base.config.train.accumulation = row.config[2];
    const RunConfig run = translated(std::string("{") + row.text + "}", base).config.train;
    EXPECT_EQ((Triple{run.batch, run.micro_batch, run.accumulation}), row.wanted) << row.text;
  }
}

// What the config has stays where the file does not speak of it.
TEST(DeepSpeedFacts, WhatTheConfigHasStays) {
  DeepSpeedBase base = with_batch(0, 1);
  base.config.train.dtype = ComputeType::kTF32;
  base.config.train.recompute = Recompute::kCheap;
  base.config.schedule.kind = ScheduleKind::kLinear;
  const std::string text = R"("bf16": {"enabled": false}, "optimizer": {"type": "AdamW"},
      "activation_checkpointing": {"cpu_checkpointing": true})";
  DeepSpeedReading reading = translated(batch_and(text), base);
  EXPECT_EQ(setting_of(reading, "train.dtype"), "tf32") << "f32 to DeepSpeed";
  EXPECT_EQ(setting_of(reading, "train.recompute"), "cheap");
  EXPECT_EQ(setting_of(reading, "schedule.kind"), "constant");
  base.given_by = [](const std::string& key) {
    return key == "schedule.kind" ? GivenBy::kConfig : GivenBy::kDefault;
  };
  reading = translated(batch_and(text), base);
  EXPECT_EQ(setting_of(reading, "schedule.kind"), "linear");
  EXPECT_EQ(text_of(reading, "scheduler"), "");
}

TEST(DeepSpeedFacts, RefusedAreThese) {
  const std::pair<const char*, std::set<std::string>> rows[] = {
      {R"("optimizer": {"type": "SGD", "params": {"dampening": 0.1}})", {"optimizer.params.dampening"}},
      {R"("optimizer": {"type": "SGD", "params": {"dampening": 0}})", {}},
      {R"("optimizer": {"type": "Lamb", "params": {"eps_inside_sqrt": true}})",
       {"optimizer.params.eps_inside_sqrt"}},
      {R"("optimizer": {"type": "AdamW", "params": {"maximize": true}})", {"optimizer.params.maximize"}},
      {R"("optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1}})",
       {"optimizer.params.max_grad_norm"}},
      {R"("optimizer": {"type": "AdamW", "params": {"lr betas": 1}})", {"optimizer.params.lr betas"}},
      {R"("optimizer": {"type": "AdamW", "params": {"fused": true, "amsgrad": false}})", {}},
      {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_step": 5}})",
       {"scheduler.params.warmup_num_step"}},
      {R"("scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 5}})",
       {"scheduler.params.total_num_steps"}},
      {R"("scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": 3}})",
       {"scheduler.params.last_batch_iteration"}},
      {R"("scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": -1}})", {}},
      {R"("gradient_allreduce_op": "sum")", {"gradient_allreduce_op"}},
      {R"("gradient_allreduce_op": "avg")", {}},
      {R"("seq_parallel_communication_data_type": "bf16")", {}},
      {R"("data_types": {"grad_accum_dtype": "fp16"})", {"data_types.grad_accum_dtype"}},
      {R"("communication_data_type": "float32", "data_types": {"grad_accum_dtype": "auto"})", {}},
      {R"("zero_optimization": {"stage": 2, "offload_param": {"device": "nvme"}})", {}},
      {R"("zero_optimization": {"stage": 1, "cpu_offload_param": true})", {}},
      {R"("zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"},
           "offload_optimizer": {"device": "nvme"}})",
       {"zero_optimization.offload_param.device", "zero_optimization.offload_optimizer.device"}},
      {R"("zero_optimization": {"offload_optimizer": {"buffer_count": 4, "speed": 1}})",
       {"zero_optimization.offload_optimizer.speed"}}};
  for (const auto& [text, keys] : rows) EXPECT_EQ(keys_of(translated(batch_and(text)).refused), keys) << text;
}

// Every key is in the section of the document that says what becomes of it, in the same words.
TEST(DeepSpeedFacts, KeysAreWhatTheDocumentSays) {
  const std::string page = read_file(std::string(VT_SOURCE_DIR) + "/docs/deepspeed.md", 1 << 20);
  const std::map<deepspeed::Rule, std::string> titles = {{deepspeed::Rule::kRead, "## Keys that are read"},
                                                         {deepspeed::Rule::kNone, "## Keys without effect"},
                                                         {deepspeed::Rule::kOff, "## Keys that are refused"}};
  for (const deepspeed::KeyRow& row : deepspeed::deepspeed_keys()) {
    if (row.rule == deepspeed::Rule::kBlock) continue;
    const size_t from = page.find(titles.at(row.rule)), to = page.find("\n## ", from);
    const std::string section = page.substr(from, to - from);
    const size_t key = section.find("`" + std::string(row.key) + "`");
    ASSERT_NE(key, std::string::npos) << row.key;
    const std::string line = section.substr(key, section.find('\n', key) - key);
    EXPECT_TRUE(line.ends_with("| " + std::string(row.text) + " |")) << row.key << ": " << line;
  }
}

TEST(DeepSpeedFacts, WhatSwitchesSomethingOn) {
  const std::pair<const char*, bool> rows[] = {{"true", true},
                                               {"false", false},
                                               {"1", true},
                                               {"0", false},
                                               {"{}", false},
                                               {R"({"a": 1})", true},
                                               {"[]", false},
                                               {"\"on\"", false},
                                               {R"({"enabled": false, "a": 1})", false},
                                               {"[1]", true},
                                               {R"({"enabled": "yes"})", true},
                                               {R"({"a": {"enabled": true}})", true},
                                               {R"({"enabled": false, "a": {"enabled": true}})", true}};
  for (const auto& [text, on] : rows) EXPECT_EQ(deepspeed::is_on(Json::parse(text)), on) << text;
}

// The texts hold the last value that is accepted, or the first that is not.
TEST(DeepSpeedFacts, EndsOfRanges) {
  const auto with_keys = [](size_t count) {
    std::string text;
    for (size_t i = 1; i < count; ++i) text += strf("\"k%zu\": null, ", i);
    return text + R"("train_batch_size": 8)";
  };
  const std::pair<std::string, bool> rows[] = {
      {with_keys(512), true},
      {with_keys(513), false},
      {R"("train_batch_size": 1048576)", true},
      {R"("train_batch_size": 1048577)", false},
      {R"("train_batch_size": 8, "steps_per_print": 0)", false},
      {R"("train_batch_size": 8, "steps_per_print": 9007199254740992)", true},
      {R"("train_batch_size": 8, "gradient_clipping": -0.5)", false},
      {R"("train_batch_size": 8, "zero_optimization": {"stage": -1})", false},
      {R"("train_batch_size": 8, "zero_optimization": {"stage": 1.5})", false},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 120})", true},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": 121})", false},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": -14})", true},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "initial_scale_power": -15})", false},
      {R"("train_batch_size": 8, "fp16": {"enabled": true, "loss_scale_window": 0})", false},
      {R"("train_batch_size": 8, "tensor_parallel": {"autotp_size": 65537})", false},
      {R"("train_batch_size": 8, "sequence_parallel_size": 0)", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": [0, 0.999]}})", true},
      {R"("train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 1]}})", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.9, 0.9]}})",
       false},
      {R"("train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"eps": 1.5}})", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 0}})", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "SGD", "params": {"momentum": 1}})", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"max_coeff": 0}})", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "Lamb", "params": {"min_coeff": 0}})", true},
      {R"("train_batch_size": 8, "optimizer": [])", false},
      {R"("train_batch_size": 8, "optimizer": {"type": "Lamb", "params": []})", false},
      {R"("train_batch_size": 8, "scheduler": {"type": "auto"})", false},
      {R"("train_batch_size": 8, "scheduler": [])", false},
      {R"("train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 2.5}})",
       false},
      {R"("train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 0}})",
       false},
      {R"("train_batch_size": 8, "scheduler":
          {"type": "WarmupCosineLR", "params": {"total_num_steps": 1, "cos_min_ratio": 1.5}})",
       false},
      {R"("train_batch_size": 8, "zero_optimization": {"offload_optimizer": {"device": "disk"}})", false},
      {R"("train_batch_size": 8, "zero_optimization": {"offload_param": {"device": "auto"}})", false}};
  for (const auto& [text, accepted] : rows) {
    const ErrorKind kind = error_of("{" + text + "}").kind();
    EXPECT_EQ(kind, accepted ? ErrorKind::kInternal : ErrorKind::kConfig) << text.substr(0, 120);
  }
}

}  // namespace
}  // namespace vitrail::testing
