// A run's config resolved: the batch and its parts, what is refused, what a resumed run may change.
#include "train/train_config.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>

namespace vitrail {
namespace {

TrainConfig valid() {
  TrainConfig config;
  config.data.train = "synthetic:3x8x8x4x40";
  return config;
}

using Trio = std::array<int64_t, 3>;  // batch, micro-batch, accumulation

TrainConfig with(const Trio& trio) {
  TrainConfig config = valid();
  config.train.batch = trio[0], config.train.micro_batch = trio[1], config.train.accumulation = trio[2];
  return config;
}

TEST(TrainConfig, TwoOfTheBatchGiveTheThird) {
  const std::pair<Trio, Trio> rows[] = {
      {{0, 0, 0}, {64, 64, 1}}, {{8, 0, 0}, {8, 8, 1}}, {{8, 4, 0}, {8, 4, 2}},
      {{8, 0, 2}, {8, 4, 2}},   {{0, 4, 2}, {8, 4, 2}}, {{0, 4, 0}, {4, 4, 1}},
      {{0, 0, 4}, {64, 16, 4}}, {{8, 4, 2}, {8, 4, 2}}, {{1, 1, 1}, {1, 1, 1}}};
  for (const auto& [given, wanted] : rows) {
    SCOPED_TRACE(::testing::PrintToString(given));
    const RunConfig run = resolved(with(given)).train;
    EXPECT_EQ((Trio{run.batch, run.micro_batch, run.accumulation}), wanted);
    EXPECT_EQ(run.eval_batch, wanted[1]);
  }
  for (const Trio& wrong :
       {Trio{8, 3, 0}, {8, 4, 3}, {8, 16, 0}, {8, 0, 3}, {-8, 0, 0}, {8, -4, 0}, {8, 0, -1}})
    EXPECT_THROW(resolved(with(wrong)), Error) << ::testing::PrintToString(wrong);
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max(), kQuarter = kHuge / 4 + 1;
  for (const Trio& wrong : {Trio{kHuge, 0, 0}, {0, kQuarter, 4}, {0, 0, kHuge}, {0, 1 << 20, 1 << 20}})
    EXPECT_THROW(resolved(with(wrong)), Error) << ::testing::PrintToString(wrong);
  TrainConfig config = with({8, 4, 0});
  config.train.eval_batch = 3;
  EXPECT_EQ(resolved(config).train.eval_batch, 3);
}

// Ranks along dp cut a micro-batch; the largest part counts.
TEST(TrainConfig, RanksShareABatch) {
  const struct {
    Trio given;
    int ranks;
    Trio wanted;  // zeros: refused
  } rows[] = {{{0, 4, 2}, 3, {24, 4, 2}},  {{12, 0, 0}, 3, {12, 4, 1}}, {{10, 0, 0}, 3, {10, 4, 1}},
              {{24, 4, 0}, 3, {24, 4, 2}}, {{10, 4, 1}, 3, {10, 4, 1}}, {{10, 3, 1}, 3, {}},
              {{24, 0, 2}, 3, {24, 4, 2}}, {{0, 0, 0}, 4, {64, 16, 1}}, {{24, 5, 0}, 3, {}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(::testing::PrintToString(row.given));
    if (row.wanted[0] == 0) {
      try {
        resolved(with(row.given), row.ranks);
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_NE(error.message().find(", mesh.dp 3: the product does not match"), std::string::npos);
        EXPECT_EQ(error.hint(),
                  "batch = micro_batch x accumulation x mesh.dp; give two of them, or batch alone");
      }
      continue;
    }
    const RunConfig run = resolved(with(row.given), row.ranks).train;
    EXPECT_EQ((Trio{run.batch, run.micro_batch, run.accumulation}), row.wanted);
  }
  constexpr int64_t kMost = 2147483647;
  EXPECT_EQ(resolved(with({kMost, 0, 0})).train.micro_batch, kMost);
  EXPECT_EQ(resolved(with({0, kMost, 1})).train.batch, kMost);
  for (const Trio& wrong : {Trio{kMost + 1, 0, 0}, {0, kMost, 2}, {0, 1, kMost + 1}})
    EXPECT_THROW(resolved(with(wrong)), Error) << ::testing::PrintToString(wrong);
}

TEST(TrainConfig, NamesThatAreNoUtf8AreRefusedByTheirKey) {
  TrainConfig config = valid();
  config.data.val = "folder:/x/\xff";
  try {
    resolved(config);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_TRUE(error.message().starts_with("data.val is ")) << error.message();
  }
}

struct Rule {
  const char* key;
  std::function<void(TrainConfig&)> change;
};

TEST(TrainConfig, RefusesByKey) {
  const Rule rules[] = {
      {"train.epochs", [](auto& c) { c.train.epochs = 0; }},
      {"train.steps", [](auto& c) { c.train.steps = -1; }},
      {"train.smoothing", [](auto& c) { c.train.smoothing = 1; }},
      {"train.smoothing", [](auto& c) { c.train.smoothing = -0.1; }},
      {"train.dropout", [](auto& c) { c.train.dropout = 1; }},
      {"train.drop_path", [](auto& c) { c.train.drop_path = 1; }},
      {"train.drop_path", [](auto& c) { c.train.drop_path = -0.1; }},
      {"train.log_every", [](auto& c) { c.train.log_every = 0; }},
      {"train.recompute_every", [](auto& c) { c.train.recompute_every = 0; }},
      {"train.save_every", [](auto& c) { c.train.save_minutes = 0; }},
      {"train.patience", [](auto& c) { c.train.patience = -1; }},
      {"train.eval_every", [](auto& c) { c.train.eval_every = -1; }},
      {"train.eval_batch", [](auto& c) { c.train.eval_batch = -1; }},
      {"train.save_every", [](auto& c) { c.train.save_every = -1; }},
      {"train.save_minutes", [](auto& c) { c.train.save_every = 1, c.train.save_minutes = -1; }},
      {"train.dropout", [](auto& c) { c.train.dropout = -0.1; }},
      {"distill.alpha",
       [](auto& c) {
         c.distill = {DistillKind::kHard, "t", -0.1, 1};
       }},
      {"train.max_minutes", [](auto& c) { c.train.max_minutes = -1; }},
      {"train.rollbacks", [](auto& c) { c.train.rollbacks = -1; }},
      {"train.skip_limit", [](auto& c) { c.train.skip_limit = 0; }},
      {"distill.teacher",
       [](auto& c) {
         c.distill = {DistillKind::kSoft, "", 0.5, 1};
       }},
      {"distill.alpha",
       [](auto& c) {
         c.distill = {DistillKind::kSoft, "t", 1.1, 1};
       }},
      {"distill.temperature",
       [](auto& c) {
         c.distill = {DistillKind::kSoft, "t", 0.5, 0};
       }},
      {"params.linear_probe",
       [](auto& c) {
         c.lora.rank = 2;
         c.params.linear_probe = true;
       }},
      {"augment.hflip", [](auto& c) { c.augment.hflip = 2; }},
      {"data.fraction", [](auto& c) { c.data.fraction = 0; }},
      {"optim.lr", [](auto& c) { c.optim.lr = 0; }},
      {"schedule.warmup", [](auto& c) { c.schedule.warmup = -1; }},
      {"loss_scale.window", [](auto& c) { c.loss_scale.window = 0; }},
      {"params.layer_decay", [](auto& c) { c.params.layer_decay = 0; }},
  };
  EXPECT_NO_THROW(resolved(valid()));
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.key);
    TrainConfig config = valid();
    rule.change(config);
    try {
      resolved(config);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(error.message().find(rule.key), std::string::npos) << error.message();
    }
  }
}

TEST(TrainConfig, TheEndsOfRangesAreAccepted) {
  const Rule rules[] = {
      {"steps for epochs",
       [](auto& c) {
         c.train.epochs = 0;
         c.train.steps = 1;
       }},
      {"nothing dropped", [](auto& c) { c.train.dropout = c.train.drop_path = c.train.smoothing = 0; }},
      {"nearly all dropped", [](auto& c) { c.train.dropout = c.train.drop_path = c.train.smoothing = 0.99; }},
      {"saved by updates",
       [](auto& c) {
         c.train.save_minutes = 0;
         c.train.save_every = 1;
       }},
      {"never back", [](auto& c) { c.train.rollbacks = 0; }},
      {"all of the teacher",
       [](auto& c) {
         c.distill = {DistillKind::kHard, "t", 1, 1};
       }},
      {"none of it",
       [](auto& c) {
         c.distill = {DistillKind::kHard, "t", 0, 1};
       }},
  };
  for (const Rule& rule : rules) {
    TrainConfig config = valid();
    rule.change(config);
    EXPECT_NO_THROW(resolved(config)) << rule.key;
  }
}

// Only settings that lead to other weights make it another run.
TEST(TrainConfig, WhatAResumedRunMayChange) {
  const std::set<std::string> free = {"train.log_every",
                                      "train.save_every",
                                      "train.save_minutes",
                                      "train.breakdown",
                                      "train.max_minutes",
                                      "train.tensorboard",
                                      "train.eval_every",
                                      "train.eval_batch",
                                      "train.patience",
                                      "train.save_adapters",
                                      "train.recompute",
                                      "train.recompute_every",
                                      "loader.workers",
                                      "loader.prefetch",
                                      "loader.on_device",
                                      "data.train",
                                      "data.val",
                                      "checkpoint.keep_last",
                                      "checkpoint.keep_every",
                                      "mesh.dp",
                                      "mesh.tp",
                                      "mesh.sp",
                                      "mesh.pp",
                                      "mesh.schedule",
                                      "mesh.virtual_stages",
                                      "mesh.stages",
                                      "mesh.tokens_on_tp",
                                      "mesh.balance",
                                      "mesh.verify_every",
                                      "mesh.bind",
                                      "mesh.zero",
                                      "mesh.accumulate",
                                      "mesh.bucket_mb",
                                      "mesh.offload",
                                      "mesh.transport"};
  const std::set<std::string> told = {
      "distill.teacher",   "train.epochs",      "train.steps",     "optim.lr",
      "train.skip_limit",  "train.rollbacks",   "loader.on_error", "loader.max_bad_fraction",
      "train.micro_batch", "train.accumulation"};
  const TrainConfig config;
  TrainConfig::sections(config, [&](const std::string& section, const auto& fields) {
    std::decay_t<decltype(fields)>::fields(fields, [&](const char* name, const auto&, const char*) {
      const std::string key = section + "." + name;
      const Change wanted = free.contains(key)                            ? Change::kFree
                            : told.contains(key) || section == "schedule" ? Change::kTold
                                                                          : Change::kRefused;
      EXPECT_EQ(change_of(key), wanted) << key;
    });
  });
  EXPECT_EQ(change_of("model.init"), Change::kFree);
  EXPECT_EQ(change_of("model.width"), Change::kRefused);
}

TEST(TrainConfig, IdentityLeavesOutWhatIsFree) {
  TrainConfig config = resolved(valid());
  const Json before = result_identity(config);
  config.train.log_every = 77, config.loader.workers = 5, config.checkpoint.keep_last = 9;
  EXPECT_EQ(result_identity(config), before);
  config.train.seed = 1;
  EXPECT_NE(result_identity(config), before);
}

TEST(TrainConfig, EveryLossHasItsKind) {
  EXPECT_EQ(loss_kind(TrainLoss::kSoftmax), LossKind::kSoftmax);
  EXPECT_EQ(loss_kind(TrainLoss::kBceSum), LossKind::kSigmoidSum);
  EXPECT_EQ(loss_kind(TrainLoss::kBceMean), LossKind::kSigmoidMean);
}

}  // namespace
}  // namespace vitrail
