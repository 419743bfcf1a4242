#include "train/trainer.h"

#include <array>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_text.h"
#include "runtime/transfer.h"
#include "telemetry/rate_meter.h"
#include "telemetry/run_log.h"
#include "train/micro_feed.h"
#include "train/picture_data.h"
#include "train/run_evaluation.h"
#include "train/run_folder.h"
#include "train/run_keeper.h"
#include "train/run_report.h"
#include "train/run_saver.h"
#include "train/run_setup.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

// Updates in a row that a dynamic loss scale may skip while it looks for its size.
constexpr int64_t kLossScaleSearch = 24;

// What the bits of a result depend on besides the config.
Json device_facts(const TrainPlace& place, const Backend& backend, const DeviceInfo& device) {
  Json facts = {{"version", place.generator}, {"backend", backend.name()}, {"isa", device.isa}};
  if (device.kind == DeviceKind::kCuda) facts["card"] = device.name;
  if (device.kernels)
    facts["kernels"] = strf("%016llx", static_cast<unsigned long long>(device.kernels->hash()));
  return facts;
}

}  // namespace

class Trainer::Run {
 public:
  Run(const TrainConfig& config, const TrainPlace& place, const Backend& backend, const DeviceInfo& device,
      TrainHooks hooks)
      : place_(place),
        hooks_(std::move(hooks)),
        folder_(place.folder),
        setup_(set_up(config, device)),
        plan_(plan_step(setup_.step, backend, device)),
        rank_(device, static_cast<uint64_t>(setup_.config.train.seed)),
        keeper_(place, setup_, device_facts(place, backend, device),
                [this](const std::string& text) { note(text); }) {
    if (setup_.config.distill.kind != DistillKind::kNone)
      teacher_ =
          std::make_unique<Teacher>(setup_.config.distill, setup_.model->card,
                                    setup_.config.train.micro_batch, setup_.step.precision, backend, device);
    require_step_fits(
        plan_, [this](int64_t micro) { return at_most_beside(micro); }, rank_.available(),
        setup_.config.augment.mixes() ? setup_.config.augment.mix_group : 1);
    if (!rank_.hardware->shares_host_memory())
      require_free_memory(setup_.loader_bytes() + setup_.decoding_bytes, "loading images for the GPU");
    keeper_.refuse_foreign_run();
    step_ = std::make_unique<TrainStep>(plan_, rank_);
    bring_pictures(setup_, *step_);
    if (teacher_) teacher_->start(rank_);
    if (!folder_.note().empty()) note(folder_.note());
    for (const std::string& text : setup_.notes) note(text);
    begin();
  }

  TrainOutcome run() {
    try {
      train();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kStopped) return stopped(why_stopped());
      // What was learned so far is kept when the data, not the learning, went wrong.
      if (error.kind() == ErrorKind::kData) saver_->save(progress_);
      throw;
    }
    return done() ? finished() : stopped(why_stopped());
  }

 private:
  const RunConfig& cfg() const { return setup_.config.train; }
  int64_t epoch_of(int64_t step) const { return step / setup_.steps_per_epoch; }
  bool averaged() const { return plan_.eval_average.has_value(); }
  bool done() const { return progress_.step >= setup_.total_steps || !outcome_.reason.empty(); }
  // Held beside the step's own memory, where that lies.
  NamedBytes beside(int64_t micro_batch) const {
    NamedBytes rows;
    if (rank_.hardware->shares_host_memory())
      rows.emplace_back("batches being loaded", setup_.loader_bytes(micro_batch));
    if (teacher_) rows.emplace_back("teacher", teacher_->bytes());
    return rows;
  }

  // The same with what comes and goes.
  NamedBytes at_most_beside(int64_t micro_batch) const {
    NamedBytes rows = beside(micro_batch);
    if (rank_.hardware->shares_host_memory() && setup_.decoding_bytes > 0)
      rows.emplace_back(kDecodingRow, setup_.decoding_bytes);
    return rows;
  }

  void train() {
    RateMeter meter;
    feed_->seek(progress_.step);
    if (progress_.step > 0 && progress_.eval_due) conclude_step();
    lose_patience();
    while (!done() && !stop_asked() && !(progress_.step > first_step_ && out_of_time())) {
      const TrainStatus status = one_step(meter);
      if (hooks_.step) hooks_.step(status);
      const auto paused = Clock::now();
      if (progress_.step == status.step) after_step(status);  // otherwise the run went back
      meter.pause(seconds_since(paused));
    }
  }

  bool out_of_time() const {
    return cfg().max_minutes > 0 && seconds_since(place_.started) >= cfg().max_minutes * 60;
  }
  bool stop_asked() const { return hooks_.stop && hooks_.stop(); }
  const char* why_stopped() const {
    return out_of_time() ? "the time limit was reached" : "stopped on request";
  }

  void note(const std::string& text) {
    if (hooks_.note) hooks_.note(text);
  }
  void event(const char* what, const std::string& text) {
    const RunEvent happened{what, text, progress_.step, unix_seconds()};
    if (log_) log_->event(happened);
    if (hooks_.event) hooks_.event(happened);
  }

  // Fresh weights or those of a checkpoint, the log, the saved config, the first checkpoint, the loaders.
  void begin() {
    keeper_.prepare(folder_.is_ours_alone());
    for (const std::string& name : folder_.tidy()) note("removed " + name);
    const bool resumed = place_.resume != ResumeMode::kFresh && resume();
    if (!resumed) step_->start(setup_.model->fill);
    open_log();
    write_file(place_.folder + "/config.json", json_text(to_json(setup_.config), 2) + "\n");
    saver_ = std::make_unique<RunSaver>(
        keeper_, *step_, cfg(), averaged(),
        RunSaver::Calls{.event = [this](const char* what, const std::string& text) { event(what, text); },
                        .before_save = [this] { log_->sync(); }});
    if (!resumed) saver_->save_first(progress_);
    first_step_ = progress_.step;
    skipped_ = counter(kSkippedUpdates);
    if (resumed) event("resume", strf("resumed at step %lld", static_cast<long long>(progress_.step)));
    feed_ =
        std::make_unique<MicroFeed>(make_train_loader(*setup_.data.train, loader_settings(Purpose::kTrain)),
                                    *step_, teacher_.get(), cfg());
    if (setup_.data.val)
      evaluation_ = std::make_unique<RunEvaluation>(setup_, *step_, loader_settings(Purpose::kEval),
                                                    [this] { return stop_asked() || out_of_time(); });
  }

  LoaderSettings loader_settings(Purpose purpose) {
    LoaderSettings settings = setup_.loader_settings(purpose);
    settings.memory = rank_.hardware->host_memory();
    settings.on_bad = [this](const BadSample& bad) {
      event("bad_sample", "skipped " + bad.name + ": " + bad.reason);
    };
    return settings;
  }

  bool resume() {
    const std::optional<Progress> found = keeper_.restore_newest(*step_);
    if (found) {
      progress_ = *found;
      return true;
    }
    bool logged = false;
    for_each_metrics_line(RunLog::metrics_path(place_.folder),
                          [&](const Json& line) { logged |= metrics_number(line, "step") >= 1; });
    const bool has_best = std::filesystem::exists(place_.folder + "/best");
    if (logged && has_best)
      throw Error(ErrorKind::kData, place_.folder + " holds a run's log and best/ but no checkpoint",
                  "without one it can only begin again: name another folder, or remove this one first");
    note("no checkpoint to resume from: starting from the beginning");
    return false;
  }

  void open_log() {
    RunLogOptions options;
    if (place_.resume != ResumeMode::kFresh || log_) options.resume_step = progress_.step;
    options.tensorboard = cfg().tensorboard;
    options.trouble = [this](const Error& error) { note(error.message()); };
    log_.reset();
    log_ = std::make_unique<RunLog>(place_.folder, options);
  }

  TrainStatus one_step(RateMeter& meter) {
    const auto start = Clock::now();
    double loss = 0;
    feed_->wait_seconds();
    for (int64_t m = 0; m < cfg().accumulation; ++m) loss += feed_->run(progress_.step, m);
    const double lr = rate_at(progress_.step);
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
    status.data_wait_s = feed_->wait_seconds();
    unlogged_s_ += status.interval_s, unlogged_wait_s_ += status.data_wait_s;
    status.memory_bytes = step_->allocated_bytes() + sum_of(beside(cfg().micro_batch));
    if (values.skip != 0) skipped_ = counter(kSkippedUpdates);
    status.skipped = skipped_;
    if (plan_.config.loss_scale.dynamic) status.loss_scale = state<1>(kLossScaleState)[0];
    status.time = unix_seconds();
    if (values.skip != 0) handle_skip(values);
    return status;
  }

  template <size_t N>
  std::array<double, N> state(const char* name) const {
    std::array<double, N> values;
    read_doubles(step_->rank(), step_->store().view(name), values);
    return values;
  }
  int64_t counter(UpdateCounter which) const {
    return static_cast<int64_t>(state<kUpdateCounters>(kUpdateCounterState)[which]);
  }
  void forget_skips_in_a_row() {
    auto counters = state<kUpdateCounters>(kUpdateCounterState);
    counters[kSkippedInARow] = 0;
    write_bytes(step_->rank(), step_->store().view(kUpdateCounterState), std::as_bytes(std::span(counters)));
  }

  // An update that was left out. Too many in a row: back to a checkpoint at half the learning rate.
  void handle_skip(const StepValues& values) {
    const int64_t in_a_row = counter(kSkippedInARow);
    const int64_t search = plan_.config.loss_scale.dynamic ? kLossScaleSearch : 0;
    event("skipped_update", strf("update skipped: gradient norm %g (%lld in a row)", values.grad_norm,
                                 static_cast<long long>(in_a_row)));
    if (in_a_row < cfg().skip_limit + search) return;
    const Progress before = progress_;
    const std::optional<Progress> found =
        before.rollbacks < cfg().rollbacks ? keeper_.restore_newest(*step_) : std::nullopt;
    if (!found)
      throw Error(
          ErrorKind::kNumerics,
          strf(
              "%lld updates in a row had NaN or Inf gradients, and %s", static_cast<long long>(in_a_row),
              keeper_.saved_step() >= 0 ? "going back did not help" : "there is no checkpoint to go back to"),
          "a lower optim.lr, optim.clip_norm=1, a longer schedule.warmup, or train.dtype=f32");
    go_back(*found, before, in_a_row);
  }

  // The log forgets the steps that are undone; the best result so far stays.
  void go_back(const Progress& to, const Progress& from, int64_t in_a_row) {
    progress_ = to;
    progress_.rollbacks = from.rollbacks + 1;
    progress_.lr_factor = from.lr_factor / 2;
    progress_.best = from.best;
    progress_.best_step = from.best_step;
    forget_skips_in_a_row();
    skipped_ = counter(kSkippedUpdates);
    open_log();
    event(
        "rollback",
        strf("%lld updates in a row had NaN or Inf: back to step %lld at %g times the learning rate",
             static_cast<long long>(in_a_row), static_cast<long long>(progress_.step), progress_.lr_factor));
    saver_->save_anew(progress_);
    feed_->seek(progress_.step);
  }

  void log_step(TrainStatus status) {
    status.interval_s = std::exchange(unlogged_s_, 0);
    status.data_wait_s = std::exchange(unlogged_wait_s_, 0);
    log_->train(status);
    if (hooks_.logged) hooks_.logged(status);
  }

  bool epoch_ends() const { return progress_.step % setup_.steps_per_epoch == 0; }
  bool last_step() const { return progress_.step == setup_.total_steps; }

  void after_step(const TrainStatus& status) {
    if (progress_.step % cfg().log_every == 0 || last_step()) log_step(status);
    const bool due = cfg().eval_every > 0 ? progress_.step % cfg().eval_every == 0 : epoch_ends();
    progress_.eval_due = evaluation_ && (due || last_step());
    conclude_step();
    saver_->save_if_due(progress_, [this] { return counter(kSkippedInARow) == 0; });
  }

  double rate_at(int64_t step) const {
    return progress_.lr_factor *
           lr_at(setup_.config.schedule, setup_.config.optim.lr, step, setup_.total_steps);
  }

  // The step's evaluation and the end of its epoch. Stopped in the middle, it is done again when resumed.
  void conclude_step() {
    if (progress_.eval_due) evaluate_now();
    progress_.eval_due = false;
    if (epoch_ends() || last_step())
      log_->finish_epoch(epoch_of(progress_.step - 1), progress_.step, rate_at(progress_.step - 1));
  }

  // Logged when all of it is done: an evaluation cut short leaves no line behind.
  void evaluate_now() {
    std::vector<EvalResult> results = evaluation_->all();
    for (size_t i = 0; i < results.size(); ++i) {
      const bool counts = i + 1 == results.size();  // the average decides where there is one
      EvalStatus status =
          results[i].status(progress_.step, epoch_of(progress_.step - 1), i == 1 ? "ema" : "model");
      status.best = counts && results[i].top1() > progress_.best;
      if (counts) judge(results[i], status.best);
      log_->eval(status);
      if (hooks_.eval) hooks_.eval(status);
    }
    outcome_.last_eval = std::move(results.back());
  }

  void judge(const EvalResult& result, bool better) {
    progress_.evals_since_best = better ? 0 : progress_.evals_since_best + 1;
    if (better && saver_->write_best()) {
      progress_.best = result.top1();
      progress_.best_step = progress_.step;
    }
    lose_patience();
  }

  void lose_patience() {
    if (cfg().patience > 0 && progress_.evals_since_best >= cfg().patience)
      outcome_.reason = strf("no better result in %lld evaluations", static_cast<long long>(cfg().patience));
  }

  TrainOutcome stopped(const std::string& why) {
    if (keeper_.saved_step() != progress_.step || progress_.eval_due) saver_->save_last(progress_);
    event("stopped", why);
    outcome_.reason = why;
    return close(false);
  }

  TrainOutcome finished() {
    if (outcome_.reason.empty()) outcome_.reason = "all steps done";
    if (keeper_.saved_step() != progress_.step) saver_->save_last(progress_);
    // A run that had ended before: its evaluation is in the log, but the report wants it whole.
    if (evaluation_ && !outcome_.last_eval) outcome_.last_eval = evaluation_->counting();
    event("finished", outcome_.reason);
    return close(true);
  }

  TrainOutcome close(bool done) {
    outcome_.finished = done;
    outcome_.step = progress_.step;
    outcome_.best = progress_.best;
    try {
      log_.reset();
      write_run_report({place_, setup_, plan_, teacher_.get(), outcome_, progress_.best_step,
                        rank_.hardware->foreign_bytes()});
    } catch (const Error& error) {
      note("report.html was not written: " + error.message());
    }
    return std::move(outcome_);
  }

  TrainPlace place_;
  TrainHooks hooks_;
  RunFolder folder_;
  RunSetup setup_;
  StepPlan plan_;
  RankContext rank_;
  RunKeeper keeper_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Teacher> teacher_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<MicroFeed> feed_;
  std::unique_ptr<RunSaver> saver_;
  std::unique_ptr<RunEvaluation> evaluation_;
  Progress progress_;
  double unlogged_s_ = 0, unlogged_wait_s_ = 0;  // since the last line of the log
  int64_t first_step_ = 0;                       // of this process
  int64_t skipped_ = 0;                          // updates, so far
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
