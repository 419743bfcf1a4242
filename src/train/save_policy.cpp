#include "train/save_policy.h"

#include <utility>

namespace vitrail {

SavePolicy::SavePolicy(CheckpointKeeper& keeper, const Team& team, const TrainStep& step,
                       const RunConfig& config, bool average, Calls calls)
    : keeper_(keeper),
      team_(team),
      step_(step),
      config_(config),
      average_(average),
      calls_(std::move(calls)) {
  keeper_.on_made_room([this](int64_t gone) {
    calls_.event("made_room", strf("the checkpoint of step %lld was removed: there was no room for more",
                                   static_cast<long long>(gone)));
    calls_.before_save();
  });
}

void SavePolicy::write(const Progress& progress, int64_t least_good) {
  const PhaseScope saving(step_.rank().pulse, RankPhase::kSave);
  last_save_ = Clock::now();
  due_ = false;
  keeper_.save(progress, step_, least_good, calls_.before_save);
}

// Ends the run: the rank that failed with its own error, the others through that.
void SavePolicy::pass_on(const SaveFailed& failed) const {
  if (failed.rank() == team_.rank()) throw Error(failed.kind(), failed.own(), failed.hint());
  team_.wait();
  throw failed;
}

// Has the first rank write a model of values that others hold parts of.
void SavePolicy::write_model(const std::function<void()>& write) {
  const PhaseScope saving(step_.rank().pulse, RankPhase::kSave);
  if (!team_.leads()) return step_.whole().serve();
  const Served served(step_.whole());
  write();
}

// A failed save is reported and not thrown: the weights are still in memory and the next save may succeed. An
// error that the other ranks do not know of ends the run, since they wait for this one.
bool SavePolicy::attempt(const char* what, By by, const std::function<void()>& write) {
  bool written = false;
  try {
    write();
    written = true;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    const bool told =
        team_.alone() || dynamic_cast<const SaveFailed*>(&error) || (by == By::kFirst && team_.leads());
    if (!told || (known && known->kind() == ErrorKind::kComm)) throw;
    calls_.event("write_failed",
                 std::string(what) + " not written: " + (known ? known->message() : error.what()));
  }
  return team_.from_leader(written ? 1 : 0) > 0;
}

void SavePolicy::save_first(const Progress& progress) {
  try {
    write(progress);
  } catch (const SaveFailed& failed) {
    pass_on(failed);
  }
  report_saved(progress);
}

void SavePolicy::report_saved(const Progress& progress) const {
  if (calls_.saved) calls_.saved(progress.step);
}

bool SavePolicy::time_is_over() const {
  const std::chrono::duration<double> since = Clock::now() - last_save_;
  return config_.save_minutes > 0 && since.count() >= config_.save_minutes * 60;
}

bool SavePolicy::is_due(const Progress& progress, bool by_time) const {
  return due_ || by_time || (config_.save_every > 0 && progress.step % config_.save_every == 0);
}

void SavePolicy::save_if_due(const Progress& progress, bool by_time,
                             const std::function<bool()>& update_was_made) {
  due_ = is_due(progress, by_time);
  if (due_ && update_was_made()) save(progress);
}

void SavePolicy::save(const Progress& progress) {
  due_ = false;
  last_save_ = Clock::now();
  if (keeper_.saved_step() != progress.step) save_anew(progress);
}

void SavePolicy::save_anew(const Progress& progress) {
  if (attempt("checkpoint", By::kAll, [&] { write(progress); })) report_saved(progress);
}

void SavePolicy::save_last(const Progress& progress) {
  if (attempt("last checkpoint", By::kAll, [&] { write(progress); })) return report_saved(progress);
  try {
    // The save is tried again, in the place of all older checkpoints but one.
    write(progress, 1);
  } catch (const SaveFailed& failed) {
    const bool kept = keep_model();
    if (failed.rank() == team_.rank() && kept) throw model_alone(failed.own());
    pass_on(failed);
  } catch (const std::exception& error) {
    if (!team_.alone() || !keep_model()) throw;
    throw model_alone(error.what());
  }
  report_saved(progress);
}

bool SavePolicy::keep_model() {
  return attempt("model", By::kFirst, [&] { write_model([&] { keeper_.write_last(step_, average_); }); });
}

Error SavePolicy::model_alone(const std::string& why) const {
  return {ErrorKind::kWrite, "the last checkpoint was not written: " + why,
          strf("the model alone is in %s; --resume goes on from the checkpoint before",
               keeper_.last_folder().c_str())};
}

bool SavePolicy::write_best(int64_t least_good) {
  return attempt("best/", By::kFirst,
                 [&] { write_model([&] { keeper_.write_best(step_, average_, least_good); }); });
}

}  // namespace vitrail
