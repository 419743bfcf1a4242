#include "train/skip_policy.h"

namespace vitrail {

namespace {
// Consecutive updates that a dynamic loss scale may skip while it searches for its magnitude.
constexpr int64_t kLossScaleSearch = 24;
}  // namespace

SkipPolicy::SkipPolicy(TrainStep& step, const RunConfig& config, CheckpointKeeper& keeper, SavePolicy& saves,
                       RunJournal& journal)
    : step_(step),
      config_(config),
      keeper_(keeper),
      saves_(saves),
      journal_(journal),
      skipped_(counter(kSkippedUpdates)) {}

int64_t SkipPolicy::skipped_after(const StepValues& values) {
  if (values.skip != 0) skipped_ = counter(kSkippedUpdates);
  return skipped_;
}

bool SkipPolicy::handle(const StepValues& values, Progress& progress) {
  if (values.skip == 0) return false;
  const int64_t in_a_row = counter(kSkippedInARow);
  const int64_t search = step_.plan().config.loss_scale.dynamic ? kLossScaleSearch : 0;
  journal_.event("skipped_update", strf("update skipped: gradient norm %g (%lld in a row)", values.grad_norm,
                                        static_cast<long long>(in_a_row)));
  if (in_a_row < config_.skip_limit + search) return false;
  const std::optional<Progress> found =
      progress.rollbacks < config_.rollbacks ? keeper_.restore_newest(step_) : std::nullopt;
  if (!found)
    throw Error(
        ErrorKind::kNumerics,
        strf("%lld updates in a row had NaN or Inf gradients, and %s", static_cast<long long>(in_a_row),
             keeper_.saved_step() >= 0 ? "going back did not help" : "there is no checkpoint to go back to"),
        "a lower optim.lr, optim.clip_norm=1, a longer schedule.warmup, or train.dtype=f32");
  saves_.team().wait();  // everyone has read the checkpoint before it is replaced
  go_back(*found, progress, in_a_row);
  return true;
}

// The log removes the steps that were undone; the best result so far stays.
void SkipPolicy::go_back(const Progress& to, Progress& progress, int64_t in_a_row) {
  const Progress from = progress;
  progress = to;
  progress.rollbacks = from.rollbacks + 1;
  progress.lr_factor = from.lr_factor / 2;
  progress.best = from.best;
  progress.best_step = from.best_step;
  progress.best_seen = from.best_seen;
  step_.forget_skips_in_a_row();
  skipped_ = counter(kSkippedUpdates);
  journal_.open();
  journal_.event(
      "rollback",
      strf("%lld updates in a row had NaN or Inf: back to step %lld at %g times the learning rate",
           static_cast<long long>(in_a_row), static_cast<long long>(progress.step), progress.lr_factor));
  saves_.save_anew(progress);
}

}  // namespace vitrail
