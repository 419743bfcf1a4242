#include "train/trainer.h"

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json_text.h"
#include "base/run_files.h"
#include "train/loop.h"
#include "train/micro_feed.h"
#include "train/rank_facts.h"
#include "train/run_balance.h"
#include "train/run_folder.h"
#include "train/run_report.h"
#include "train/teacher.h"
#include "train/whole_check.h"

namespace vitrail {

// The parts of a run, in the order of their dependencies.
class Trainer::Run {
 public:
  Run(const TrainConfig& config, const TrainPlace& place, const Backend& backend, RankContext& rank,
      TrainHooks hooks)
      : place_(place),
        team_(rank.ranks),
        hooks_(team_.leads()
                   ? std::move(hooks)
                   : TrainHooks{.stop = std::move(hooks.stop), .disturb = std::move(hooks.disturb)}),
        files_(place.folder),
        rank_(rank),
        start_(place.phases_before),
        folder_(team_.leads() ? std::make_unique<RunFolder>(place.folder) : nullptr),
        setup_(start_.timed("data", [&] { return set_up(config, rank.device, place_in(rank)); })),
        plan_(start_.timed("plan", [&] { return plan_step(setup_.step, backend, rank.device); })),
        stop_{place_, hooks_, cfg().max_minutes},
        journal_(place_, hooks_, progress_, cfg().tensorboard, team_.leads()),
        bad_(setup_, team_, journal_),
        keeper_(place, setup_, device_facts(place, backend, rank.device),
                [this](const std::string& text) { journal_.note(text); }),
        balance_(setup_, team_) {
    setup_.reach(rank.ranks);
    if (balance_.to_find()) start_.timed("balance", [&] { settle_balance(backend); });
    if (setup_.config.distill.kind != DistillKind::kNone)
      teacher_ = std::make_unique<Teacher>(setup_.config.distill, setup_.model->card, setup_.train_share.rows,
                                           setup_.step.precision, backend, rank.device);
    if (place.check_whole) require_whole_check(plan_, setup_.config.mesh, team_.alone());
    require_room();
    if (team_.leads()) keeper_.refuse_foreign_run();
    compare_ranks();
    start_.timed("allocate", [&] {
      step_ = std::make_unique<TrainStep>(plan_, rank_);
      bring_images(setup_, *step_);
      if (teacher_) teacher_->start(rank_);
    });
    if (folder_ && !folder_->note().empty()) journal_.note(folder_->note());
    for (const std::string& text : setup_.notes) journal_.note(text);
    start_.timed("weights", [&] { begin(); });
  }

  TrainOutcome run() {
    try {
      loop_->run();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kStopped) return stopped();
      // An error of the data leaves the weights valid, so they are saved.
      if (error.kind() == ErrorKind::kData && (team_.alone() || bad_.too_many()) && loop_->has_learned())
        saves_->save(progress_);
      throw;
    }
    return loop_->done() ? finished() : stopped();
  }

 private:
  const RunConfig& cfg() const { return setup_.config.train; }

  // Returns the memory held beside the step's own, on the same device.
  NamedBytes beside(int64_t micro_batch) const {
    NamedBytes rows;
    if (rank_.hardware->shares_host_memory())
      rows.emplace_back("batches being loaded", setup_.loader_bytes(micro_batch));
    if (teacher_) rows.emplace_back("teacher", teacher_->bytes());
    return rows;
  }

  // Returns the same with memory that is held at times.
  NamedBytes at_most_beside(int64_t micro_batch) const {
    NamedBytes rows = beside(micro_batch);
    if (rank_.hardware->shares_host_memory() && setup_.decoding_bytes > 0)
      rows.emplace_back(kDecodingRow, setup_.decoding_bytes);
    return rows;
  }

  void require_room() const {
    require_step_fits(
        plan_, [this](int64_t micro) { return at_most_beside(micro); }, rank_.available(),
        setup_.config.augment.mixes() ? setup_.config.augment.mix_group : 1);
    if (!rank_.hardware->shares_host_memory())
      require_host_room(plan_, setup_.loader_bytes() + setup_.decoding_bytes, rank_.sharing);
  }

  // Ranks that differ would not come through the updates that are measured.
  void settle_balance(const Backend& backend) {
    if (team_.leads()) keeper_.refuse_foreign_run();
    compare_ranks();
    journal_.note(balance_.settle(keeper_, place_.resume != ResumeMode::kFresh, backend, rank_));
    plan_ = plan_step(setup_.step, backend, rank_.device);
  }

  // Prepares weights (fresh or from a checkpoint), the log, the saved config, the first checkpoint, and the
  // loaders.
  void begin() {
    if (folder_) tidy();
    team_.wait();  // no rank reads the folder before it is tidy
    const bool resumed = place_.resume != ResumeMode::kFresh && resume();
    if (!resumed) step_->start(setup_.model->filler());
    require_same_step();
    journal_.open();
    if (team_.leads()) write_file(files_.config(), json_text(to_json(setup_.config), 2) + "\n");
    saves_ = std::make_unique<SavePolicy>(
        keeper_, team_, *step_, cfg(), plan_.averages(),
        SavePolicy::Calls{
            .event = [this](const char* what, const std::string& text) { journal_.event(what, text); },
            .before_save = [this] { journal_.sync(); },
            .saved = hooks_.saved});
    verify_start(resumed);
    if (!resumed) saves_->save_first(progress_);
    skips_ = std::make_unique<SkipPolicy>(*step_, cfg(), keeper_, *saves_, journal_);
    if (balance_.asked())
      journal_.event("balance", "ranks share a micro-batch as " + shares_text(setup_.shares()));
    if (resumed)
      journal_.event("resume", strf("resumed at step %lld", static_cast<long long>(progress_.step)));
    if (team_.leads()) journal_.finding("seen_validation", keeper_.seen_in_validation());
    make_loop();
    if (resumed && evaluator_) evaluator_->write_owed(progress_);
  }

  // A run that goes on from a checkpoint without a comparison needs one to go back to.
  void verify_start(bool resumed) {
    if (setup_.config.mesh.verify_every == 0 || team_.alone()) return;
    const bool known = resumed && keeper_.is_verified(progress_.step);
    replicas_ =
        std::make_unique<ReplicaPolicy>(*step_, team_, setup_.config.mesh.verify_every, keeper_, journal_);
    replicas_->require_agreement(progress_);
    if (resumed && !known) saves_->save_anew(progress_);
  }

  void tidy() {
    keeper_.prepare(folder_->is_ours_alone());
    for (const std::string& name : folder_->tidy()) journal_.note("removed " + name);
  }

  // Ranks that differ would wait for each other without end, or learn from other batches than they share out.
  void compare_ranks() {
    if (team_.alone()) return;
    const std::string text = start_.timed("compare", [&] {
      return require_same_ranks(*rank_.ranks, setup_, keeper_.teacher(), plan_, rank_.device);
    });
    if (!text.empty()) journal_.note(text);
  }

  // Ranks that see other files would go on from other states.
  void require_same_step() const {
    const auto theirs = static_cast<int64_t>(team_.from_leader(static_cast<double>(progress_.step)));
    VT_REQUIRE(
        theirs == progress_.step, ErrorKind::kData,
        "rank 0 goes on from step %lld, rank %d from step %lld: %s is not the same folder on both hosts",
        static_cast<long long>(theirs), setup_.step.distribution.mesh.rank,
        static_cast<long long>(progress_.step), place_.folder.c_str());
  }

  static RankPlace place_in(const RankContext& rank) {
    if (!rank.ranks) return {};
    return {rank.ranks->mesh().rank, rank.ranks->mesh().world(), rank.sharing, rank.overlapping};
  }

  void make_loop() {
    feed_ =
        std::make_unique<MicroFeed>(make_train_loader(*setup_.data.train, loader_settings(Purpose::kTrain)),
                                    *step_, teacher_.get(), cfg());
    if (place_.check_whole)
      feed_->show_next(
          [this](const MicroBatch& batch) { journal_.note(checked_text(WholeCheck(*step_).run(batch))); });
    if (setup_.data.val)
      evaluator_ = std::make_unique<Evaluator>(
          setup_, team_, *step_, loader_settings(Purpose::kEval),
          [this] { return team_.any(stop_.asked() || loop_->time_is_over()); }, *saves_, journal_, bad_);
    const size_t held = step_->allocated_bytes() + sum_of(beside(cfg().micro_batch));
    Loop::Parts parts{setup_,          stop_,    team_, *step_, *feed_, evaluator_.get(), *saves_, *skips_,
                      replicas_.get(), journal_, bad_,  start_, held,   seconds_};
    if (balance_.asked()) {
      balance_.share_memory(held);
      parts.known = [this](const std::vector<double>& seconds) { journal_.note(balance_.table(seconds)); };
      // Shares that do not fit the ranks any more are measured anew when the run is resumed.
      parts.slowed = [this] { setup_.measured_on.clear(); };
    }
    // The host's part of an update is in no device file.
    if (hooks_.predict && !plan_.offload) seconds_ = UpdateSeconds(hooks_.predict(plan_, cfg().accumulation));
    loop_ = std::make_unique<Loop>(parts, progress_);
  }

  LoaderSettings loader_settings(Purpose purpose) {
    LoaderSettings settings = setup_.loader_settings(purpose);
    settings.memory = rank_.hardware->host_memory();
    settings.on_bad = [this, purpose](const BadSample& bad) { bad_.found(purpose, bad); };
    settings.limits_bad = team_.alone();
    return settings;
  }

  bool resume() {
    if (const std::optional<Progress> found = keeper_.restore_newest(*step_)) {
      progress_ = *found;
      return true;
    }
    refuse_without_checkpoint(files_);
    journal_.note("no checkpoint to resume from: starting from the beginning");
    return false;
  }

  TrainOutcome stopped() {
    const std::string why = stop_.reason();
    if (keeper_.saved_step() != progress_.step || progress_.eval_due) saves_->save_last(progress_);
    return close(false, why, evaluator_ ? evaluator_->known() : std::nullopt);
  }

  TrainOutcome finished() {
    const std::string why = loop_->patience_exhausted() ? strf("no better result in %lld evaluations",
                                                               static_cast<long long>(cfg().patience))
                                                        : "all steps done";
    if (keeper_.saved_step() != progress_.step) saves_->save_last(progress_);
    // The log of a run that had ended before holds its last evaluation, but the report needs all of its
    // results.
    std::optional<EvalResult> last;
    if (evaluator_) last = evaluator_->last();
    return close(true, why, std::move(last));
  }

  // The processor's seconds that the loader of each rank took for training images.
  std::vector<double> loading_of_all() const {
    const double mine[] = {cfg().breakdown ? feed_->loading_seconds() : 0};
    return cfg().breakdown ? team_.gather(mine) : std::vector<double>();
  }

  TrainOutcome close(bool finished, const std::string& reason, std::optional<EvalResult> last_eval) {
    if (evaluator_) evaluator_->settle(progress_, finished);
    const std::string seconds = seconds_.text(team_.alone());
    if (!seconds.empty()) journal_.event("predicted", seconds);
    journal_.event(finished ? "finished" : "stopped", reason);
    TrainOutcome outcome{finished, reason, progress_.step, progress_.best, std::move(last_eval)};
    const std::vector<double> loading = loading_of_all();
    if (!team_.leads()) return outcome;
    if (cfg().breakdown && loop_->timing().updates > 0) journal_.note(breakdown_tables(loop_->timing()));
    if (cfg().breakdown) journal_.note(loading_text(loading));
    try {
      journal_.close();
      write_run_report({place_, setup_, plan_, teacher_.get(), outcome, progress_.best_step, rank_, seconds});
      outcome.reported = true;
    } catch (const Error& error) {
      journal_.note(strf("%s was not written: %s", RunFiles::kReport, error.message().c_str()));
    }
    return outcome;
  }

  TrainPlace place_;
  Team team_;
  TrainHooks hooks_;
  RunFiles files_;
  RankContext& rank_;
  StartTimes start_;
  std::unique_ptr<RunFolder> folder_;  // of the leader
  RunSetup setup_;
  StepPlan plan_;
  Progress progress_;
  StopRule stop_;
  RunJournal journal_;
  BadSamples bad_;
  CheckpointKeeper keeper_;
  RunBalance balance_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Teacher> teacher_;
  std::unique_ptr<MicroFeed> feed_;
  std::unique_ptr<SavePolicy> saves_;
  std::unique_ptr<SkipPolicy> skips_;
  std::unique_ptr<ReplicaPolicy> replicas_;
  std::unique_ptr<Evaluator> evaluator_;
  UpdateSeconds seconds_;
  std::unique_ptr<Loop> loop_;
};

Trainer::Trainer(const TrainConfig& config, const TrainPlace& place, const Backend& backend,
                 RankContext& rank, TrainHooks hooks)
    : run_(std::make_unique<Run>(config, place, backend, rank, std::move(hooks))) {}
Trainer::~Trainer() = default;

TrainOutcome Trainer::run() {
  return run_->run();
}

}  // namespace vitrail
