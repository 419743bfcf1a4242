// vitrail::train: a run from a config, with the callbacks of the caller as the hooks of the trainer.
#include "vitrail/train.h"

#include <filesystem>
#include <vector>

#include "api/option_words.h"
#include "api/settings.h"
#include "base/file.h"
#include "base/text.h"
#include "plan/devices.h"
#include "train/device_transport.h"
#include "train/run_trainers.h"
#include "vitrail/version.h"

namespace vitrail {

namespace {

StepReport report_of(const TrainStatus& status) {
  return {.step = status.step,
          .total_steps = status.total_steps,
          .epoch = status.epoch,
          .loss = status.loss,
          .learning_rate = status.lr,
          .grad_norm = status.grad_norm,
          .images_per_second = status.images_per_second,
          .seconds_left = status.eta_s,
          .skipped = status.skipped};
}

EvalReport report_of(const EvalStatus& status) {
  return {.step = status.step,
          .epoch = status.epoch,
          .loss = status.loss,
          .top1 = status.top1,
          .top5 = status.top5,
          .mean_ap = status.mean_ap,
          .macro_f1 = status.macro_f1,
          .count = status.count,
          .weights = status.weights,
          .best = status.best};
}

TrainHooks hooks_for(const TrainCallbacks& callbacks, std::stop_token stop) {
  TrainHooks hooks;
  if (callbacks.on_step)
    hooks.step = [&](const TrainStatus& status) { callbacks.on_step(report_of(status)); };
  if (callbacks.on_eval) hooks.eval = [&](const EvalStatus& status) { callbacks.on_eval(report_of(status)); };
  if (callbacks.on_event)
    hooks.event = [&](const RunEvent& event) { callbacks.on_event({event.what, event.text, event.step}); };
  hooks.saved = callbacks.on_checkpoint;
  hooks.note = callbacks.on_note;
  hooks.stop = [stop = std::move(stop)] { return stop.stop_requested(); };
  return hooks;
}

ResumeMode resume_mode(Resume resume) {
  switch (resume) {
    case Resume::kNo:
      return ResumeMode::kFresh;
    case Resume::kNewest:
      return ResumeMode::kNewest;
    case Resume::kStrict:
      return ResumeMode::kStrict;
  }
  throw Error(ErrorKind::kUsage,
              strf("resume is %d: expected kNo, kNewest or kStrict", static_cast<int>(resume)),
              "set TrainOptions::resume to a value of vitrail::Resume");
}

TrainCallbacks kept_by(CallerThrow& caller, const TrainCallbacks& callbacks) {
  return {.on_step = vitrail::kept_by(caller, callbacks.on_step),
          .on_eval = vitrail::kept_by(caller, callbacks.on_eval),
          .on_checkpoint = vitrail::kept_by(caller, callbacks.on_checkpoint),
          .on_event = vitrail::kept_by(caller, callbacks.on_event),
          .on_note = [note = vitrail::kept_by(caller, callbacks.on_note)](const std::string& text) {
            if (note) note(in_words_of("TrainOptions", text));
          }};
}

TrainResult run(const std::string& config, const TrainOptions& options, const TrainCallbacks& callbacks,
                std::stop_token stop) {
  const auto started = std::chrono::steady_clock::now();
  VT_REQUIRE(!options.folder.empty(), ErrorKind::kUsage,
             "expected a folder for the run, found an empty name: options.folder says where it is kept");
  require_path(options.folder);
  require_threads(options.threads);
  require_ranks(options.ranks);
  std::error_code gone;
  const TrainPlace place{options.folder, resume_mode(options.resume), std::string("Vitrail ") + version(),
                         started, std::filesystem::current_path(gone).string()};
  // The config is resolved before the run starts, so that a mistake in it creates no folder.
  std::vector<std::string> notes;
  const TrainConfig given = training_config(config, &notes), whole = resolved(given, options.ranks);
  LocalRanks ranks = local_ranks(options, whole);
  ranks.on_note = callbacks.on_note;
  if (callbacks.on_note)
    for (const std::string& note : notes) callbacks.on_note(note);
  const TrainHooks hooks = hooks_for(callbacks, std::move(stop));
  const TrainOutcome outcome =
      run_trainers(std::move(ranks), given, place, named_device(options.device).backend,
                   [&](int rank) { return rank == 0 ? hooks : TrainHooks{}; });
  return {outcome.finished, outcome.reason, outcome.step,
          outcome.best >= 0 ? std::optional(outcome.best) : std::nullopt};
}

}  // namespace

TrainResult train(const std::string& config, const TrainOptions& options, const TrainCallbacks& callbacks,
                  std::stop_token stop) {
  CallerThrow caller;
  const auto call = [&] {
    const TrainCallbacks kept = kept_by(caller, callbacks);
    TrainOptions own = options;
    own.variables = vitrail::kept_by(caller, options.variables);
    return run(config, own, kept, std::move(stop));
  };
  return in_words_of_options("TrainOptions", call, caller);
}

}  // namespace vitrail
