#include "train/trainer.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/run_lock.h"
#include "io/checkpoint/durable.h"
#include "io/checkpoint/facts.h"
#include "telemetry/rate_meter.h"
#include "telemetry/run_log.h"
#include "train/run_report.h"
#include "train/run_setup.h"
#include "train/teacher.h"
#include "train/train_state.h"

namespace vitrail {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Changes of the config that a resumed run may bring: they move the schedule or what is done about trouble,
// not what was learned.
bool may_change(const std::string& key) {
  for (const char* prefix : {"config.train.epochs", "config.train.steps", "config.schedule.",
                             "config.optim.lr", "config.train.skip_limit", "config.train.rollbacks",
                             "config.loader.on_error", "config.loader.max_bad_fraction"})
    if (key.starts_with(prefix)) return true;
  return false;
}

std::string prepared(const std::string& folder) {
  make_folders(folder);
  return folder;
}

}  // namespace

class Trainer::Run {
 public:
  Run(const TrainConfig& config, const TrainPlace& place, const Backend& backend, const DeviceInfo& device,
      TrainHooks hooks)
      : place_(place),
        hooks_(std::move(hooks)),
        lock_(prepared(place.folder)),
        setup_(set_up(config)),
        plan_(plan_step(setup_.step, backend, device)),
        rank_(device, static_cast<uint64_t>(setup_.config.train.seed)),
        checkpoints_(place.folder, setup_.config.checkpoint) {
    if (setup_.config.distill.kind != DistillKind::kNone)
      teacher_ = std::make_unique<Teacher>(setup_.config.distill, setup_.model->card,
                                           setup_.config.train.micro_batch, backend, device);
    require_step_fits(plan_, other_bytes(), device.memory_bytes);
    refuse_foreign_run();
    step_ = std::make_unique<TrainStep>(plan_, rank_);
    if (teacher_) teacher_->start(rank_);
    if (!lock_.note().empty()) note(lock_.note());
    for (const std::string& text : setup_.notes) note(text);
    begin();
  }

  TrainOutcome run() {
    const auto started = Clock::now();
    last_save_ = started;
    RateMeter meter;
    loader_->seek(progress_.step);
    lose_patience();
    while (!done()) {
      const TrainStatus status = one_step(meter);
      if (hooks_.step) hooks_.step(status);
      const auto paused = Clock::now();
      if (progress_.step == status.step) after_step(status);  // otherwise the run went back
      meter.pause(seconds_since(paused));
      if (done()) break;
      if (hooks_.stop && hooks_.stop()) return stopped("stopped on request");
      if (cfg().max_minutes > 0 && seconds_since(started) >= cfg().max_minutes * 60)
        return stopped("the time limit was reached");
    }
    return finished();
  }

 private:
  const RunConfig& cfg() const { return setup_.config.train; }
  int64_t epoch_of(int64_t step) const { return step / setup_.steps_per_epoch; }
  bool averaged() const { return plan_.eval_average.has_value(); }
  bool done() const { return progress_.step >= setup_.total_steps || !outcome_.reason.empty(); }
  // Held beside the step's own memory.
  size_t other_bytes() const { return setup_.loader_bytes() + (teacher_ ? teacher_->bytes() : 0); }

  void note(const std::string& text) {
    if (hooks_.note) hooks_.note(text);
  }
  void event(const char* what, const std::string& text) {
    const RunEvent happened{what, text, progress_.step, unix_seconds()};
    if (log_) log_->event(happened);
    if (hooks_.event) hooks_.event(happened);
  }

  void refuse_foreign_run() {
    if (place_.resume != ResumeMode::kFresh || checkpoints_.steps().empty()) return;
    throw Error(ErrorKind::kUsage, place_.folder + " already holds a run with checkpoints",
                "--resume goes on with it; --out names another folder");
  }

  Json facts() const {
    return {
        {"progress", to_json(progress_)},
        {"config", result_identity(setup_.config)},
        {"data",
         {{"fingerprint", strf("%016llx", static_cast<unsigned long long>(setup_.data.train->fingerprint()))},
          {"size", setup_.data.train->size()}}}};
  }

  // Fresh weights or those of a checkpoint, the log, the loaders, the saved config.
  void begin() {
    for (const std::string& text : checkpoints_.prepare()) note(text);
    const bool resumed = place_.resume != ResumeMode::kFresh && restore_newest();
    if (!resumed) step_->start(setup_.model->fill);
    RunLogOptions options;
    if (place_.resume != ResumeMode::kFresh) options.resume_step = progress_.step;
    options.tensorboard = cfg().tensorboard;
    options.trouble = [this](const Error& error) { note(error.message()); };
    log_ = std::make_unique<RunLog>(place_.folder, options);
    write_file(place_.folder + "/config.json", to_json(setup_.config).dump(2) + "\n");
    if (resumed) event("resume", strf("resumed at step %lld", static_cast<long long>(progress_.step)));
    LoaderSettings settings = setup_.loader_settings(Purpose::kTrain);
    settings.on_bad = [this](const BadSample& bad) {
      event("bad_sample", "skipped " + bad.name + ": " + bad.reason);
    };
    loader_ = make_train_loader(*setup_.data.train, settings);
    if (setup_.data.val)
      eval_loader_ = make_eval_loader(*setup_.data.val, setup_.loader_settings(Purpose::kEval));
  }

  bool restore_newest() {
    std::vector<std::string> complaints;
    const std::optional<OpenedCheckpoint> found = checkpoints_.newest_good(&complaints);
    for (const std::string& text : complaints) note("checkpoint passed over: " + text);
    if (!complaints.empty() && place_.resume == ResumeMode::kStrict)
      throw Error(ErrorKind::kData, complaints.front(),
                  "--resume without =strict falls back to an older one");
    if (!found) {
      note("no checkpoint to resume from: starting from the beginning");
      return false;
    }
    require_same_run(found->facts);
    restore(*found);
    return true;
  }

  void restore(const OpenedCheckpoint& checkpoint) {
    restore_state(*checkpoint.state, step_->store());
    step_->refresh();
    progress_ = progress_from(checkpoint.facts);
    saved_step_ = progress_.step;
  }

  void require_same_run(const Json& saved) {
    Json now = facts();
    now.erase("progress");
    Json before = saved;
    before.erase("progress");
    std::string refused;
    for (const FactDifference& difference : compare_facts(before, now)) {
      if (may_change(difference.key))
        note("changed since the checkpoint: " + to_string(difference));
      else
        refused += "\n  " + to_string(difference);
    }
    if (!refused.empty())
      throw Error(ErrorKind::kConfig, "the checkpoint was made by another run:" + refused,
                  "resume with the config the run was started with, or train into another folder");
  }

  TrainStatus one_step(RateMeter& meter) {
    const auto start = Clock::now();
    double loss = 0;
    loader_->wait_seconds();
    for (int64_t m = 0; m < cfg().accumulation; ++m) loss += one_micro(loader_->next(), m);
    const double lr = progress_.lr_factor * lr_at(setup_.config.schedule, setup_.config.optim.lr,
                                                  progress_.step, setup_.total_steps);
    const StepValues values = step_->run_update(lr);
    ++progress_.step;
    meter.step(cfg().batch);
    TrainStatus status;
    status.step = progress_.step, status.total_steps = setup_.total_steps;
    status.epoch = epoch_of(progress_.step - 1), status.total_epochs = cfg().steps > 0 ? 0 : cfg().epochs;
    status.loss = loss, status.lr = lr, status.grad_norm = values.grad_norm;
    status.images_per_second = meter.images_per_second();
    status.eta_s = meter.eta_seconds(setup_.total_steps - progress_.step);
    status.interval_s = seconds_since(start);
    status.data_wait_s = loader_->wait_seconds();
    unlogged_s_ += status.interval_s, unlogged_wait_s_ += status.data_wait_s;
    status.memory_bytes = step_->allocated_bytes() + other_bytes();
    status.skipped = static_cast<int64_t>(counters()[kSkippedUpdates]);
    if (plan_.config.loss_scale.dynamic)
      status.loss_scale = step_->store().view(kLossScaleState).as<double>()[0];
    status.time = unix_seconds();
    if (values.skip != 0) handle_skip(values);
    return status;
  }

  double one_micro(const Batch& batch, int64_t micro) {
    weights_.resize(batch.weights.size());
    for (size_t i = 0; i < weights_.size(); ++i)
      weights_[i] = batch.weights[i] / static_cast<float>(cfg().batch);
    MicroBatch step_batch{batch.pictures,           batch.targets, weights_, {}, cfg().seed, progress_.step,
                          micro * cfg().micro_batch};
    if (teacher_) step_batch.teacher = teacher_->targets(batch.pictures);
    step_->run_micro(step_batch);
    double loss = 0;
    const std::span<const float> losses = step_->losses();
    for (size_t i = 0; i < losses.size(); ++i)
      if (weights_[i] > 0) loss += static_cast<double>(losses[i]) * static_cast<double>(weights_[i]);
    return loss;
  }

  double* counters() const { return step_->store().view(kUpdateCounterState).as<double>(); }

  // An update that was left out. Too many in a row: back to a checkpoint at half the learning rate.
  void handle_skip(const StepValues& values) {
    const auto in_a_row = static_cast<int64_t>(counters()[kSkippedInARow]);
    const int64_t search = plan_.config.loss_scale.dynamic ? 24 : 0;  // halvings a loss scale may need
    event("skipped_update", strf("update skipped: gradient norm %g (%lld in a row)", values.grad_norm,
                                 static_cast<long long>(in_a_row)));
    if (in_a_row < cfg().skip_limit + search) return;
    const std::optional<OpenedCheckpoint> found = checkpoints_.newest_good();
    if (!found || progress_.rollbacks >= cfg().rollbacks)
      throw Error(
          ErrorKind::kNumerics,
          strf("%lld updates in a row had NaN or Inf gradients, and %s", static_cast<long long>(in_a_row),
               found ? "going back did not help" : "there is no checkpoint to go back to"),
          "a lower optim.lr, optim.clip_norm=1, a longer schedule.warmup, or train.dtype=f32");
    const Progress before = progress_;
    restore(*found);
    progress_.rollbacks = before.rollbacks + 1;
    progress_.lr_factor = before.lr_factor / 2;
    counters()[kSkippedInARow] = 0;
    save_due_ = false;
    event("rollback", strf("back to step %lld at %g times the learning rate",
                           static_cast<long long>(progress_.step), progress_.lr_factor));
    loader_->seek(progress_.step);
  }

  void log_step(TrainStatus status) {
    status.interval_s = std::exchange(unlogged_s_, 0);
    status.data_wait_s = std::exchange(unlogged_wait_s_, 0);
    log_->train(status);
    if (hooks_.logged) hooks_.logged(status);
  }

  void after_step(const TrainStatus& status) {
    const bool epoch_end = progress_.step % setup_.steps_per_epoch == 0;
    const bool last = progress_.step == setup_.total_steps;
    if (progress_.step % cfg().log_every == 0 || last) log_step(status);
    const bool eval_due = cfg().eval_every > 0 ? progress_.step % cfg().eval_every == 0 : epoch_end;
    if (eval_loader_ && (eval_due || last)) evaluate_now();
    if (epoch_end || last) log_->finish_epoch(status.epoch, progress_.step, status.lr);
    const bool by_steps = cfg().save_every > 0 && progress_.step % cfg().save_every == 0;
    const bool by_time = cfg().save_minutes > 0 && seconds_since(last_save_) >= cfg().save_minutes * 60;
    save_due_ = save_due_ || by_steps || by_time;
    // Among skipped updates there is nothing worth going back to: the save waits for a good one.
    if (save_due_ && counters()[kSkippedInARow] == 0) save_or_go_on();
  }

  EvalResult evaluate_weights(bool average) {
    const EvalOptions options{.batch = cfg().eval_batch, .loss = cfg().loss, .progress = {}, .stop = {}};
    return evaluate(
        *setup_.data.val, *eval_loader_,
        [&](std::span<const float> pictures, int64_t count) {
          return step_->evaluate(pictures, count, average);
        },
        options);
  }

  void evaluate_now() {
    for (bool average : {false, true}) {
      if (average && !averaged()) continue;
      EvalResult result = evaluate_weights(average);
      const bool counts = average == averaged();  // the average decides where there is one
      EvalStatus status =
          result.status(progress_.step, epoch_of(progress_.step - 1), average ? "ema" : "model");
      status.best = counts && result.top1() > progress_.best;
      if (counts) judge(result, status.best);
      log_->eval(status);
      if (hooks_.eval) hooks_.eval(status);
      if (counts) outcome_.last_eval = std::move(result);
    }
  }

  void judge(const EvalResult& result, bool better) {
    progress_.evals_since_best = better ? 0 : progress_.evals_since_best + 1;
    if (better) {
      progress_.best = result.top1();
      progress_.best_step = progress_.step;
      write_best();
    }
    lose_patience();
  }

  void lose_patience() {
    if (cfg().patience > 0 && progress_.evals_since_best >= cfg().patience)
      outcome_.reason = strf("no better result in %lld evaluations", static_cast<long long>(cfg().patience));
  }

  void write_best() {
    const std::string folder = place_.folder + "/best", fresh = place_.folder + "/.tmp-best";
    try {
      std::error_code ignored;
      std::filesystem::remove_all(fresh, ignored);
      write_model_folder(fresh, setup_.model->card, step_->store(), setup_.config.lora, averaged(),
                         cfg().save_adapters);
      replace_folder(fresh, folder, place_.folder + "/.tmp-best-old");
    } catch (const Error& error) {
      event("write_failed", "best/ was not written: " + error.message());
    }
  }

  void save() {
    CheckpointContent content;
    content.step = progress_.step;
    content.facts = facts();
    content.state = state_tensors(step_->store());
    content.model_bytes = static_cast<uint64_t>(count_params(setup_.model->card.config)) * 4;
    content.write_model = [this](const std::string& folder) {
      write_model_folder(folder, setup_.model->card, step_->store(), setup_.config.lora, false,
                         cfg().save_adapters);
    };
    checkpoints_.save(content);
    saved_step_ = progress_.step;
  }

  // A checkpoint that cannot be written is told and the run goes on: the disk may have room again later.
  void save_or_go_on() {
    last_save_ = Clock::now();
    save_due_ = false;
    if (saved_step_ == progress_.step) return;
    try {
      save();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kWrite) throw;
      event("write_failed", "checkpoint not written: " + error.message());
    }
  }

  TrainOutcome stopped(const std::string& why) {
    if (saved_step_ != progress_.step) save();
    event("stopped", why);
    outcome_.reason = why;
    return close(false);
  }

  TrainOutcome finished() {
    if (outcome_.reason.empty()) outcome_.reason = "all steps done";
    // A run that had ended before: its evaluation is in the log, but the report wants it whole.
    if (eval_loader_ && !outcome_.last_eval) outcome_.last_eval = evaluate_weights(averaged());
    if (saved_step_ != progress_.step) save();
    event("finished", outcome_.reason);
    return close(true);
  }

  TrainOutcome close(bool done) {
    outcome_.finished = done;
    outcome_.step = progress_.step;
    outcome_.best = progress_.best;
    try {
      log_.reset();
      write_run_report({place_, setup_, plan_, teacher_.get(), outcome_, progress_.best_step});
    } catch (const Error& error) {
      note("report.html was not written: " + error.message());
    }
    return std::move(outcome_);
  }

  TrainPlace place_;
  TrainHooks hooks_;
  RunLock lock_;
  RunSetup setup_;
  StepPlan plan_;
  RankContext rank_;
  CheckpointStore checkpoints_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Teacher> teacher_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<Loader> loader_, eval_loader_;
  Progress progress_;
  int64_t saved_step_ = -1;
  bool save_due_ = false;
  double unlogged_s_ = 0, unlogged_wait_s_ = 0;  // since the last line of the log
  Clock::time_point last_save_;
  std::vector<float> weights_;
  TrainOutcome outcome_;
};

Trainer::Trainer(const TrainConfig& config, const TrainPlace& place, const Backend& backend,
                 const DeviceInfo& device, TrainHooks hooks)
    : run_(std::make_unique<Run>(config, place, backend, device, std::move(hooks))) {}
Trainer::~Trainer() = default;

TrainOutcome Trainer::run() {
  return run_->run();
}

}  // namespace vitrail
