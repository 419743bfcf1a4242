// What a run may be asked for besides plain training, on several ranks against one: number types with a loss
// scale, teachers, class weights, several labels, updates that are skipped; and the same world twice.
#include "image_folder.h"

namespace vitrail::testing {
namespace {

// Batches that 2 and 3 ranks cut, evaluations whose last batch is padded.
TrainConfig shared_config(int64_t steps) {
  TrainConfig config = tiny_config(steps);
  config.train.batch = 12;
  config.train.eval_batch = 5;
  config.train.eval_every = 4;
  config.optim.clip_norm = 1;
  return config;
}

void expect_near(double found, double wanted, double relative, const char* what, size_t at) {
  EXPECT_NEAR(found, wanted, relative * std::abs(wanted)) << what << " " << at;
}

// Evaluations see every image once, whoever computed it, and padding not at all.
void expect_same_run(const Ran& many, const Ran& one, double relative) {
  ASSERT_EQ(many.steps.size(), one.steps.size());
  for (size_t i = 0; i < one.steps.size(); ++i) {
    expect_near(many.steps[i].loss, one.steps[i].loss, relative, "loss", i);
    EXPECT_EQ(many.steps[i].skipped, one.steps[i].skipped) << i;
    if (!std::isnan(one.steps[i].loss_scale)) {
      EXPECT_EQ(many.steps[i].loss_scale, one.steps[i].loss_scale) << i;
    }
  }
  ASSERT_EQ(many.evals.size(), one.evals.size());
  ASSERT_FALSE(one.evals.empty());
  for (size_t i = 0; i < one.evals.size(); ++i) {
    EXPECT_EQ(many.evals[i].count, one.evals[i].count);
    EXPECT_EQ(many.evals[i].top1, one.evals[i].top1);
    EXPECT_EQ(many.evals[i].top5, one.evals[i].top5);
    EXPECT_EQ(many.evals[i].mean_ap.has_value(), one.evals[i].mean_ap.has_value());
    EXPECT_EQ(many.evals[i].mean_ap, one.evals[i].mean_ap);
    EXPECT_EQ(many.evals[i].macro_f1, one.evals[i].macro_f1);
    expect_near(many.evals[i].loss, one.evals[i].loss, relative, "evaluation", i);
  }
  EXPECT_EQ(many.outcome.finished, one.outcome.finished);
}

struct RunCase {
  const char* name;
  std::function<void(TrainConfig&, const WorkFolder&)> change;
  double relative = 1e-5;
};

// The scale overflows at first, so that updates are skipped on all ranks alike.
void in_f16(TrainConfig& c, const WorkFolder&) {
  c.train.dtype = ComputeType::kF16;
  c.loss_scale = {.mode = LossScaleMode::kDynamic, .initial = 1e9, .window = 3, .min = 512, .max = 1e9};
}
void taught(TrainConfig& c, const WorkFolder& work, DistillKind kind) {
  train(tiny_config(10), work / "teacher");
  c.distill = {kind, work / "teacher/best", 0.5, 2};
}
void with_labels(TrainConfig& c, const WorkFolder& work, TrainLoss loss) {
  c.data.train = labelled_folder(work);
  c.data.val_fraction = 0.3;
  c.train.loss = loss;
}

const RunCase kCases[] = {
    {"f16_with_loss_scale", in_f16, 2e-3},
    {"soft_teacher", [](auto& c, auto& work) { taught(c, work, DistillKind::kSoft); }},
    {"hard_teacher", [](auto& c, auto& work) { taught(c, work, DistillKind::kHard); }},
    {"class_weights",
     [](auto& c, auto& work) {
       c.data.train = image_folder(work, {}, true);
       c.data.val_fraction = 0.3;
       c.loader.class_weights = true;
     }},
    {"balanced_classes",
     [](auto& c, auto& work) {
       c.data.train = image_folder(work, {}, true);
       c.loader.balanced = true;
     }},
    {"bce_sum", [](auto& c, auto&) { c.train.loss = TrainLoss::kBceSum; }},
    {"several_labels_mean", [](auto& c, auto& work) { with_labels(c, work, TrainLoss::kBceMean); }},
    {"several_labels_sum", [](auto& c, auto& work) { with_labels(c, work, TrainLoss::kBceSum); }}};

class RunOnRanks : public ::testing::TestWithParam<RunCase> {};

TEST_P(RunOnRanks, FollowsOneRank) {
  const WorkFolder work;
  TrainConfig config = shared_config(8);
  GetParam().change(config, work);
  const Ran one = train(config, work / "one");
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    expect_same_run(train(config, work / std::to_string(ranks), {.ranks = ranks}), one, GetParam().relative);
  }
}
INSTANTIATE_TEST_SUITE_P(All, RunOnRanks, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

// What every rank does when an update has gone wrong is decided alike: skipped, back, given up.
TEST(RanksThatGoBack, SkipGoBackAndGiveUpAsOneRankDoes) {
  const WorkFolder work;
  const auto run = [&](int ranks, Ran& ran) {
    const std::string folder = work / std::to_string(ranks);
    TrainConfig config = shared_config(4);
    config.optim.clip_norm = 0;
    config.schedule.kind = ScheduleKind::kConstant;
    config.train.save_every = 2;
    config.train.skip_limit = 3;
    train(config, folder, {.ranks = ranks});
    config.train.steps = 40;
    config.optim.lr = 1e30;
    return train_error(ran, config, folder, {.resume = ResumeMode::kNewest, .ranks = ranks});
  };
  Ran one;
  const Error alone = run(1, one);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    Ran many;
    const Error error = run(ranks, many);
    EXPECT_EQ(error.kind(), ErrorKind::kNumerics) << error.what();
    EXPECT_EQ(error.message(), alone.message());
    EXPECT_EQ(many.events_of("rollback"), 2);
    EXPECT_EQ(many.events_of("rollback"), one.events_of("rollback"));
    // The rank that gives up first ends the exchanges of the others: the first rank may not come to its last
    // line.
    EXPECT_LE(many.events_of("skipped_update"), one.events_of("skipped_update"));
    EXPECT_GE(many.events_of("skipped_update"), one.events_of("skipped_update") - 1);
    EXPECT_EQ(many.steps.back().lr, one.steps.back().lr);
    EXPECT_EQ(CheckpointStore(work / std::to_string(ranks)).steps(), CheckpointStore(work / "1").steps());
  }
}

TEST(SameWorldTwice, HasTheSameBitsAfterTwentyUpdates) {
  struct World {
    int ranks;
    int64_t tp, zero;
  };
  for (const World& world : {World{3, 1, 0}, {4, 2, 3}, {2, 1, 1}}) {
    SCOPED_TRACE(world.ranks);
    const WorkFolder work;
    TrainConfig config = full_config(20);
    config.train.batch = 12, config.train.micro_batch = 0;
    config.augment.mix_group = 2;
    config.mesh.tp = world.tp, config.mesh.zero = world.zero;
    const Ran first = train(config, work / "a", {.ranks = world.ranks});
    const Ran second = train(config, work / "b", {.ranks = world.ranks});
    EXPECT_EQ(first.losses(), second.losses());
    const Tensors a = state_of(work / "a"), b = state_of(work / "b");
    ASSERT_FALSE(a.empty());
    EXPECT_EQ(differing(a, b), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace vitrail::testing
