// What is told of a DeepSpeed file, word by word: notes, refusals, errors and their remedies.
#include <gtest/gtest.h>

#include "temp_folder.h"
#include "train/deepspeed/keys.h"
#include "train/helpers/deepspeed_reading.h"

namespace vitrail::testing {
namespace {

GivenBy by_config(const std::string&) {
  return GivenBy::kConfig;
}
GivenBy by_command(const std::string&) {
  return GivenBy::kCommand;
}
GivenBy by_nobody(const std::string&) {
  return GivenBy::kDefault;
}

TEST(DeepSpeedNotes, ReadAsTheyShould) {
  DeepSpeedBase base = with_batch(64, 2);
  base.config.optim.eps = 0.5, base.config.optim.clip_norm = 3;
  base.config.train.dtype = ComputeType::kF16;
  const struct {
    const char *text, *key, *note;
    GivenBy (*given)(const std::string&);
  } rows[] = {
      {R"("train_batch_size": 32, "gradient_accumulation_steps": 2)", "train_batch_size",
       "an update takes 32 images: 8 on each of 2 data-parallel ranks, 2 times", by_nobody},
      {R"("train_batch_size": 32, "tensor_parallel": {"autotp_size": 2})", "train_batch_size",
       "an update takes 32 images: 32 on each of 1 data-parallel rank, 1 time", by_nobody},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto")",
       "train_micro_batch_size_per_gpu", "train_micro_batch_size_per_gpu is \"auto\": 16, from the other two",
       by_nobody},
      {R"("train_batch_size": "auto")", "train_batch_size", "train_batch_size is \"auto\": 64, as given",
       by_nobody},
      {R"("train_batch_size": 8)", "train_batch_size",
       "train_batch_size 8 gives way to train.batch=64 of the command line", by_command},
      {R"("train_batch_size": 8, "gradient_clipping": 1)", "gradient_clipping",
       "gradient_clipping 1.0 replaces optim.clip_norm=3.0 of the config", by_config},
      {R"("train_batch_size": 64, "gradient_clipping": 1)", "gradient_clipping",
       "gradient_clipping 1.0 gives way to optim.clip_norm=3.0 of the command line", by_command},
      {R"("gradient_clipping": "auto")", "gradient_clipping",
       "gradient_clipping is \"auto\": optim.clip_norm is 3.0, as given", by_config},
      {R"("gradient_clipping": "auto")", "gradient_clipping",
       "gradient_clipping is \"auto\": optim.clip_norm is 3.0, the default", by_nobody},
      {R"("optimizer": {"type": "AdamW"})", "optimizer.params.eps",
       "optimizer.params.eps 1e-08 (DeepSpeed's default) replaces optim.eps=0.5 of the config", by_config},
      {R"("bf16": {"enabled": "auto"})", "bf16.enabled",
       "bf16.enabled is \"auto\": train.dtype is f16, so it is off", by_nobody},
      {R"("fp16": {"enabled": "auto"})", "fp16.enabled",
       "fp16.enabled is \"auto\": train.dtype is f16, so it is on", by_nobody},
      {R"("train_batch_sise": 8)", "train_batch_sise",
       "train_batch_sise is no key of DeepSpeed, which passes over it; did you mean train_batch_size?",
       by_nobody},
      {R"("fp16": {"speed": 8})", "fp16.speed", "fp16.speed is no key of DeepSpeed, which passes over it",
       by_nobody},
      {R"("zero_optimization": {"overlap_comm": true})", "zero_optimization.overlap_comm",
       "zero_optimization.overlap_comm has no effect: gradients are always exchanged", by_nobody},
      {R"("zero_optimization": {"reduce_bucket_size": "auto"})", "zero_optimization.reduce_bucket_size",
       "\"auto\": mesh.bucket_mb holds", by_nobody},
      {R"("zero_optimization": {"offload_param": {"nvme_path": "/x"}})",
       "zero_optimization.offload_param.nvme_path", "has no effect: how states move, not whether", by_nobody},
      {R"("zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}})",
       "zero_optimization.offload_param.device", "is cpu: the optimizer's state lies there, too", by_nobody},
      {R"("zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}})",
       "zero_optimization.offload_param.device",
       "is cpu and has no effect: below stage 3 every rank has all parameters", by_nobody},
      {R"("scheduler": {"type": "WarmupLR", "lr_scheduler_type": "cosine"})", "scheduler.lr_scheduler_type",
       "scheduler.lr_scheduler_type has no effect", by_nobody},
      {R"("optimizer": {"type": "Adam", "legacy_fusion": true})", "optimizer.legacy_fusion",
       "optimizer.legacy_fusion has no effect", by_nobody},
      {R"("optimizer": {"type": "Adam", "params": {"fused": true}})", "optimizer.params.fused",
       "has no effect: the update is the same rule", by_nobody},
      {R"("optimizer": {"type": "Adam", "params": {"betas": "auto"}})", "optimizer.params.betas",
       "is \"auto\": optim.beta1 and optim.beta2 hold", by_nobody},
      {R"("optimizer": {"type": "Adam"})", "scheduler",
       "the file has no scheduler: the learning rate stays constant", by_nobody},
      {R"("optimizer": {"type": "Adam", "params": {"lr": 0.5}}, "scheduler":
          {"type": "WarmupLR", "params": {"warmup_max_lr": 0.25, "warmup_type": "sine"}})",
       "scheduler.params.warmup_max_lr",
       "scheduler.params.warmup_max_lr 0.25 replaces the optimizer's learning rate of 0.5, as in DeepSpeed",
       by_nobody},
      {"", "scheduler.params.warmup_type",
       "scheduler.params.warmup_type is sine, which DeepSpeed takes for log", by_nobody},
      {R"("optimizer": {"type": "Adam", "params": {"lr": 0.5}}, "scheduler": {"type": "WarmupDecayLR",
          "params": {"warmup_max_lr": "auto", "warmup_min_lr": "auto", "total_num_steps": "auto"}})",
       "scheduler.params.warmup_max_lr", "is \"auto\": the optimizer's learning rate, 0.5", by_nobody},
      {"", "scheduler.params.warmup_min_lr", "is \"auto\": 0", by_nobody},
      {"", "scheduler.params.total_num_steps", "is \"auto\": the run's own number of updates", by_nobody}};
  std::string text;
  for (const auto& row : rows) {
    if (*row.text) text = row.text;
    base.given_by = row.given;
    const std::string told = text_of(translated("{" + text + "}", base), row.key);
    EXPECT_NE(told.find(row.note), std::string::npos) << row.key << " of " << text << ": " << told;
  }
}

TEST(DeepSpeedNotes, ATypeBetweenRanksThatShareImagesNeedsSuchRanks) {
  const char* path = "seq_parallel_communication_data_type";
  EXPECT_EQ(text_of(translated(strf(R"({"train_batch_size": 8, "%s": "bf16"})", path)), path),
            std::string(path) + " is bf16 and has no effect: no ranks share an image's tokens\n");
}

TEST(DeepSpeedNotes, AValueThatGivesWayChangesNothing) {
  DeepSpeedBase base = with_batch(64, 1);
  base.config.optim.clip_norm = 3;
  base.given_by = by_command;
  EXPECT_EQ(translated(R"({"gradient_clipping": 1})", base).config.optim.clip_norm, 3);
  base.given_by = by_config;
  EXPECT_EQ(translated(R"({"gradient_clipping": 1})", base).config.optim.clip_norm, 1);
  EXPECT_EQ(text_of(translated(R"({"gradient_clipping": 3})", base), "gradient_clipping"), "")
      << "the same value replaces nothing";
}

TEST(DeepSpeedNotes, RefusalsSayWhyAndWhatWouldDo) {
  const struct {
    const char *text, *told;
  } rows[] = {
      {R"("zero_optimization": {"stge": 1})",
       "zero_optimization.stge: DeepSpeed has no such key; did you mean zero_optimization.stage?"},
      {R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_step": 5}})",
       "scheduler.params.warmup_num_step: WarmupLR has no such parameter; did you mean warmup_num_steps?"},
      {R"("optimizer": {"type": "Lion", "params": {"eps": 1}})",
       "optimizer.params.eps: lion has no such parameter"},
      {R"("optimizer": {"type": "Muon"})",
       "optimizer.type: it is Muon; there are Adam, AdamW, Lamb, SGD and Lion"},
      {R"("elasticity": {"enabled": true})", "elasticity: it chooses the batch by the ranks"},
      {R"("gradient_allreduce_op": "sum")", "it is sum; gradients are means"},
      {R"("optimizer": {"type": "AdamW", "params": {"lr": 0.01}}, "scheduler": {"type": "WarmupLR"})",
       "became the optimizer's learning rate, 0.01: write which"}};
  for (const auto& row : rows) {
    const DeepSpeedReading reading = translated(R"({"train_batch_size": 8, )" + std::string(row.text) + "}");
    ASSERT_EQ(reading.refused.size(), 1u) << row.text;
    EXPECT_NE(reading.refused[0].text.find(row.told), std::string::npos) << reading.refused[0].text;
  }
}

TEST(DeepSpeedNotes, ErrorsSayWhatWasExpected) {
  const struct {
    const char *text, *message, *hint;
  } rows[] = {
      {R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})",
       "ds.json: zero_optimization.stage is 4", "expected a whole number from 0 to 3 or \"auto\""},
      {R"({"train_batch_size": 8, "gradient_clipping": -1.5})", "gradient_clipping is -1.5",
       "expected a number from 0 to 1e+30 or \"auto\""},
      {R"({"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": []}})",
       "fp16.loss_scale is an array", "expected a number from 0 to 1e+30"},
      {R"({"train_batch_size": 8, "fp16": 3})", "fp16 is 3", "expected an object"},
      {R"({"train_batch_size": 8, "optimizer": {"type": {}}})", "optimizer.type is an object",
       "expected a text"},
      {R"({"train_batch_size": 8, "wall_clock_breakdown": 1})", "wall_clock_breakdown is 1",
       "expected true or false"},
      {R"({"train_batch_size": 8, "scheduler": {"type": "WarmupDecayLR"}})",
       "scheduler.params.total_num_steps is missing", "expected the number of updates of WarmupDecayLR"},
      {"7", "ds.json holds number; expected a DeepSpeed JSON, which is one object", "train_batch_size"}};
  for (const auto& row : rows) {
    const Error error = error_of(row.text);
    EXPECT_NE(error.message().find(row.message), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find(row.hint), std::string::npos) << error.what();
  }
  try {
    read_deepspeed("nowhere.json", {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_EQ(error.hint(), "check what is given to --deepspeed");
  }
}

// The batch that is named beside the numbers would do.
TEST(DeepSpeedNotes, ATripleThatDoesNotMultiplyIsToldWithTheNearest) {
  const struct {
    BatchTriple given;
    int64_t world;
    const char *message, *hint;
  } rows[] = {{{32, 0, 0},
               3,
               "a batch of 32 is not micro-batch 10 x accumulation 1 x 3 data-parallel ranks (given: "
               "train_batch_size "
               "32)",
               "train_batch_size 30 or 33, or another number of ranks"},
              {{2, 0, 0},
               3,
               "a batch of 2 is not micro-batch 0 x accumulation 1 x 3",
               "train_batch_size 3, or another number of ranks"},
              {{50, 8, 0},
               2,
               "a batch of 50 is not micro-batch 8 x accumulation 3 x 2 data-parallel ranks (given: "
               "train_batch_size 50, "
               "train_micro_batch_size_per_gpu 8)",
               "train_batch_size 48 or 64, or another number of ranks"},
              {{50, 0, 4},
               1,
               "a batch of 50 is not micro-batch 12 x accumulation 4 x 1 data-parallel rank (given: "
               "train_batch_size 50, "
               "gradient_accumulation_steps 4)",
               "train_batch_size 48 or 52, or another number of ranks"},
              {{32, 16, 1}, 1, "a batch of 32 is not", "train_batch_size 16, or another number of ranks"},
              {{40, 16, 2}, 1, "a batch of 40 is not", "train_batch_size 32, or another number of ranks"}};
  for (const auto& row : rows) try {
      complete_triple(row.given, row.world, "ds.json");
      ADD_FAILURE() << row.message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(error.message().find(row.message), std::string::npos) << error.what();
      EXPECT_EQ(error.hint(), row.hint) << error.what();
    }
}

// Three heads are shared by no two ranks, so that of four dp alone is proposed.
TEST(DeepSpeed, ProposesMeshesThatCutTheHeads) {
  DeepSpeedBase base{.ranks = 4};
  base.config.model.arch = "deit_tiny_patch16_224", base.config.mesh.tp = 3;
  try {
    translate_deepspeed(parse_deepspeed(R"({"train_batch_size": 8})", "ds.json"), "ds.json", base);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "mesh.dp=4 mesh.tp=1 mesh.sp=1");
  }
}

}  // namespace
}  // namespace vitrail::testing
