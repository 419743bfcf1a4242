#include "train/save_policy.h"

#include <utility>

namespace vitrail {

namespace {
// While it lives, the first rank reads values that lie in parts; the others are released with it.
class Served {
 public:
  explicit Served(WholeValues& values) : values_(values) {}
  ~Served() {
    try {
      values_.end_serving();
    } catch (const Error&) {
      // The others have failed: the next exchange with them tells it.
    }
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

 private:
  WholeValues& values_;
};
}  // namespace

SavePolicy::SavePolicy(CheckpointKeeper& keeper, const Team& team, const TrainStep& step,
                       const RunConfig& config, bool average, Calls calls)
    : keeper_(keeper), team_(team), step_(step), config_(config), average_(average), calls_(std::move(calls)) {
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
  if (!team_.leads()) {
    step_.whole().serve();
    return keeper_.note_saved(progress.step);
  }
  calls_.before_save();
  const Served served(step_.whole());
  keeper_.save(progress, step_, least_good);
}

// A failed save of the first rank is reported and not thrown: the weights are still in memory and the next save may succeed.
bool SavePolicy::attempt(const char* what, const std::function<void()>& write) {
  bool written = false;
  const int64_t before = keeper_.saved_step();
  try {
    write();
    written = true;
  } catch (const Error& error) {
    calls_.event("write_failed", std::string(what) + " not written: " + error.message());
  } catch (const std::exception& error) {
    calls_.event("write_failed", std::string(what) + " not written: " + error.what());
  }
  written = team_.from_leader(written ? 1 : 0) > 0;
  if (!written && !team_.leads()) keeper_.note_saved(before);
  return written;
}

void SavePolicy::save_first(const Progress& progress) {
  write(progress);
  tell_saved(progress);
}

void SavePolicy::tell_saved(const Progress& progress) const {
  if (calls_.saved) calls_.saved(progress.step);
}

bool SavePolicy::time_is_over() const {
  const std::chrono::duration<double> since = Clock::now() - last_save_;
  return config_.save_minutes > 0 && since.count() >= config_.save_minutes * 60;
}

void SavePolicy::save_if_due(const Progress& progress, bool by_time,
                             const std::function<bool()>& update_was_made) {
  const bool by_steps = config_.save_every > 0 && progress.step % config_.save_every == 0;
  due_ = due_ || by_steps || by_time;
  if (due_ && update_was_made()) save(progress);
}

void SavePolicy::save(const Progress& progress) {
  due_ = false;
  last_save_ = Clock::now();
  if (keeper_.saved_step() != progress.step) save_anew(progress);
}

void SavePolicy::save_anew(const Progress& progress) {
  if (attempt("checkpoint", [&] { write(progress); })) tell_saved(progress);
}

void SavePolicy::save_last(const Progress& progress) {
  if (attempt("last checkpoint", [&] { write(progress); })) return tell_saved(progress);
  try {
    // The save is tried again, in the place of all older checkpoints but one.
    write(progress, 1);
  } catch (const std::exception& error) {
    std::string kept;
    if (team_.alone()) attempt("model", [&] { kept = keeper_.write_last(step_, average_); });
    if (kept.empty()) throw;
    throw Error(ErrorKind::kWrite, strf("the last checkpoint was not written: %s", error.what()),
                strf("the model alone is in %s; --resume goes on from the checkpoint before", kept.c_str()));
  }
  tell_saved(progress);
}

bool SavePolicy::write_best() {
  const PhaseScope saving(step_.rank().pulse, RankPhase::kSave);
  return attempt("best/", [&] {
    if (!team_.leads()) return step_.whole().serve();
    const Served served(step_.whole());
    keeper_.write_best(step_, average_);
  });
}

}  // namespace vitrail
