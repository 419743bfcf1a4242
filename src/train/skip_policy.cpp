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
  progress.skipped_in_a_row = values.skip == 0 ? 0 : progress.skipped_in_a_row + 1;
  if (values.skip == 0) return false;
  const int64_t in_a_row = counter(kSkippedInARow);
  const int64_t search = step_.plan().config.loss_scale.dynamic ? kLossScaleSearch : 0;
  journal_.event("skipped_update", strf("update skipped: gradient norm %g (%lld in a row)", values.grad_norm,
                                        static_cast<long long>(in_a_row)));
  if (in_a_row < config_.skip_limit + search) return false;
  if (progress.rollbacks >= config_.rollbacks) give_up(progress, in_a_row, "going back did not help");
  const std::optional<Progress> found = keeper_.restore_before(step_, progress.last_made());
  if (!found) give_up(progress, in_a_row, "no checkpoint is from before the last update that was made");
  saves_.team().wait();  // everyone has read the checkpoint before it is replaced
  go_back(*found, progress, in_a_row);
  return true;
}

// A run that is resumed shall not begin where no update can be made.
void SkipPolicy::give_up(const Progress& progress, int64_t in_a_row, const char* why) {
  const auto kept = saves_.team().leads() ? keeper_.drop_since(progress.last_made()) : std::nullopt;
  if (kept)
    journal_.event("given_up", strf("later checkpoints were removed, since no update can be made from them: "
                                    "--resume goes on from step %lld",
                                    static_cast<long long>(*kept)));
  saves_.team().wait();
  throw Error(
      ErrorKind::kNumerics,
      strf("%lld updates in a row had NaN or Inf gradients, and %s", static_cast<long long>(in_a_row), why),
      "a lower optim.lr, optim.clip_norm=1, a longer schedule.warmup, or train.dtype=f32");
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
  progress.owed_step = -1;  // the weights it belongs to are gone
  skipped_ = counter(kSkippedUpdates);
  journal_.open();
  journal_.event(
      "rollback",
      strf("%lld updates in a row had NaN or Inf: back to step %lld at %g times the learning rate",
           static_cast<long long>(in_a_row), static_cast<long long>(progress.step), progress.lr_factor));
  saves_.save_anew(progress);
}

}  // namespace vitrail
