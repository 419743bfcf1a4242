#include "train/checkpoint_keeper.h"

#include <filesystem>

#include "io/checkpoint/durable.h"
#include "io/checkpoint/unfinished.h"
#include "io/sealed_folder.h"
#include "io/write_target.h"
#include "train/agreement.h"
#include "train/same_run.h"
#include "train/seen_images.h"
#include "train/teacher.h"

namespace vitrail {

namespace {

constexpr const char* kBalance = "balance";  // how ranks shared out a micro-batch
// Facts that are ignored when two runs are compared.
constexpr const char* kVerified = "verified";
constexpr const char* kNoIdentity[] = {"progress", kVerified, kLearnedFrom, kStartedIn, kBalance};

bool was_verified(const Json& facts) {
  const auto found = facts.find(kVerified);
  return found != facts.end() && found->is_boolean() && found->get<bool>();
}

// Returns whether a checkpoint is of an earlier step and was not saved among skipped updates.
bool was_made_before(const Json& facts, int64_t before) {
  const Progress saved = progress_from(facts);
  return saved.skipped_in_a_row == 0 && saved.step < before;
}

Json identity_of(const Dataset& data) {
  const auto hex = [](uint64_t number) { return strf("%016llx", static_cast<unsigned long long>(number)); };
  return {{"fingerprint", hex(data.fingerprint())},
          {"contents", hex(data.contents_fingerprint())},
          {"size", data.size()}};
}

// The ranks of a run, for the store of its checkpoints.
class RankPartners : public Partners {
 public:
  explicit RankPartners(Communicator& world) : world_(world) {}
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::vector<std::string> from_all(const std::string& mine) override {
    return vitrail::from_all(world_, mine);
  }

 private:
  Communicator& world_;
};

std::optional<RankPartners> partners_of(const TrainStep& step) {
  MeshCommunicators* const ranks = step.rank().ranks;
  return ranks ? std::optional<RankPartners>(ranks->world()) : std::nullopt;
}

}  // namespace

Json device_facts(const TrainPlace& place, const Backend& backend, const DeviceInfo& device) {
  Json facts = {{"version", place.generator}, {"backend", backend.name()}, {"isa", device.isa}};
  if (!device.shares_host_memory) facts["card"] = device.name;
  if (device.kernels)
    facts["kernels"] = strf("%016llx", static_cast<unsigned long long>(device.kernels->hash()));
  return facts;
}

CheckpointKeeper::CheckpointKeeper(const TrainPlace& place, const RunSetup& setup, Json machine,
                                   Report report)
    : place_(place),
      files_(place.folder),
      setup_(setup),
      machine_(std::move(machine)),
      train_data_(identity_of(*setup.data.train)),
      learned_(learned_from(setup.config.data, *setup.data.train)),
      val_data_(setup.data.val ? identity_of(*setup.data.val) : Json::object()),
      card_(card_facts(setup.model->card)),
      teacher_(teacher_facts(setup.config.distill, setup.model->card.config)),
      report_(std::move(report)),
      checkpoints_(place.folder, setup.config.checkpoint) {
  learned_.earlier = learned_earlier(setup.config.model.init, learned_, *setup.data.train);
}

void CheckpointKeeper::refuse_foreign_run() const {
  if (place_.resume != ResumeMode::kFresh || checkpoints_.steps().empty()) return;
  throw Error(ErrorKind::kUsage, place_.folder + " already holds a run with checkpoints",
              "--resume goes on with it; --out names another folder");
}

void CheckpointKeeper::prepare(bool sole) {
  for (const char* name : {RunFiles::kBest, RunFiles::kLast}) refuse_link(name);
  for (const char* name : {RunFiles::kBest, RunFiles::kLast})
    if (finish_replacing(files_.at(name), files_.aside(name))) report_(std::string("put back ") + name + "/");
  for (const char* name : {RunFiles::kBest, RunFiles::kLast}) require_own(name);
  for (const std::string& name : checkpoints_.prepare(sole))
    report_(strf("removed %s/%s", RunFiles::kCheckpoints, name.c_str()));
}

// Returns whether the name is free or holds a model that a run has written. The best/ of earlier versions has
// no manifest.
bool CheckpointKeeper::is_own(const std::string& name) const {
  const std::string path = files_.at(name);
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) return false;
  if (!std::filesystem::exists(path, error)) return true;
  if (!std::filesystem::is_directory(path, error) || !foreign_to_model(path).empty()) return false;
  return name == RunFiles::kBest || is_sealed(path) || std::filesystem::is_empty(path, error);
}

void CheckpointKeeper::require_own(const std::string& name) const {
  if (is_own(name)) return;
  throw Error(ErrorKind::kWrite,
              strf("%s is not what a run has written, and the run would replace it", files_.at(name).c_str()),
              "move it elsewhere or rename it, or train into another folder with --out");
}

// A folder takes the place of the old one by a rename: what a link leads to would stay as it is.
void CheckpointKeeper::refuse_link(const std::string& name) const {
  const std::string path = files_.at(name);
  std::error_code unknown;
  if (!std::filesystem::is_symlink(path, unknown)) return;
  throw Error(
      ErrorKind::kWrite, path + " is a link; a run replaces the folder of that name",
      strf("remove the link (a new %s is made here), or link the run's whole folder: --out takes a link",
           name.c_str()));
}

Json CheckpointKeeper::facts(const Progress& progress) const {
  return {{"progress", to_json(progress)},
          {kVerified, is_verified(progress.step)},
          {kBalance, {{"shares", setup_.shares()}, {"measured_on", setup_.measured_on}}},
          {kStartedIn, place_.started_in},
          {kLearnedFrom, to_json(learned_)},
          {"config", result_identity(setup_.config)},
          {"machine", machine_},
          {"data", train_data_},
          {"val", val_data_},
          {"card", card_},
          {"teacher", teacher_}};
}

std::vector<int64_t> CheckpointKeeper::measured_shares(const std::string& measured_on) {
  const std::optional<OpenedCheckpoint> found = checkpoints_.newest_good();
  if (!found || !found->facts.contains(kBalance)) return {};
  const Json& balance = found->facts.at(kBalance);
  if (!balance.is_object() || balance.value("measured_on", "") != measured_on) return {};
  return balance.value("shares", std::vector<int64_t>());
}

std::optional<Progress> CheckpointKeeper::restore_verified(TrainStep& step) {
  return restore_and_drop(step, was_verified);
}

std::optional<Progress> CheckpointKeeper::restore_before(TrainStep& step, int64_t before) {
  return restore_and_drop(step, [&](const Json& facts) { return was_made_before(facts, before); });
}

std::optional<int64_t> CheckpointKeeper::drop_since(int64_t before) {
  const std::optional<OpenedCheckpoint> found = checkpoints_.newest_good(
      nullptr, nullptr, [&](const Json& facts) { return was_made_before(facts, before); });
  if (!found || found->step == checkpoints_.steps().back()) return std::nullopt;
  checkpoints_.remove_after(found->step);
  return found->step;
}

std::optional<Progress> CheckpointKeeper::restore_and_drop(TrainStep& step, const Wanted& wanted) {
  const std::optional<Progress> found = restore(step, wanted);
  if (found && (!step.rank().ranks || step.rank().ranks->mesh().rank == 0))
    checkpoints_.remove_after(found->step);
  return found;
}

std::optional<Progress> CheckpointKeeper::restore(TrainStep& step, const Wanted& wanted) {
  std::vector<std::string> problems;
  std::optional<RankPartners> partners = partners_of(step);
  const std::optional<OpenedCheckpoint> found =
      checkpoints_.newest_good(&problems, partners ? &*partners : nullptr, wanted);
  for (const std::string& text : problems) report_("checkpoint passed over: " + text);
  if (!problems.empty() && (!found || place_.resume == ResumeMode::kStrict))
    throw Error(ErrorKind::kData, problems.front(),
                found ? "--resume without =strict falls back to an older one"
                      : "no other is left; to begin again, remove " + checkpoints_.folder() +
                            " or name another folder");
  if (!found) return std::nullopt;
  const bool same_val = is_comparable(found->facts);
  keep_earlier(found->facts);
  restore_state(*found->state, step.store());
  step.refresh();
  saved_step_ = found->step;
  verified_step_ = was_verified(found->facts) ? found->step : -1;
  Progress progress = progress_from(found->facts);
  passing_ = progress.skipped_in_a_row > 0 ? progress.step : -1;
  if (!same_val) {
    report_("other validation data: the results so far do not count for best/ any more");
    progress.best = progress.best_seen = -1;
    progress.owed_step = -1;
    progress.best_step = progress.evals_since_best = 0;
  }
  return progress;
}

// Refuses a checkpoint of another run. Returns whether results on the validation data can be compared, too.
bool CheckpointKeeper::is_comparable(const Json& saved) const {
  Json now = facts({}), before = saved;
  for (const char* key : kNoIdentity) {
    now.erase(key);
    before.erase(key);
  }
  return require_same_run(before, now, report_);
}

// What the run began with may have been replaced since, but the weights that it gave have not.
void CheckpointKeeper::keep_earlier(const Json& saved) {
  if (!knows_earlier(saved)) return;
  if (std::optional<LearnedFrom> learned = read_learned_from(saved))
    learned_.earlier = std::move(learned->earlier);
}

std::string CheckpointKeeper::seen_in_validation() const {
  if (!setup_.data.val) return {};
  return seen_validation(*setup_.data.val, *setup_.data.train, learned_.earlier);
}

uint64_t CheckpointKeeper::model_bytes() const {
  return static_cast<uint64_t>(count_params(setup_.model->card.config)) * size_of(DType::kF32);
}

void CheckpointKeeper::save(const Progress& progress, const TrainStep& step, int64_t least_good,
                            std::function<void()> before) {
  std::optional<RankPartners> partners = partners_of(step);
  CheckpointContent content;
  content.step = progress.step;
  content.facts = facts(progress);
  content.before = std::move(before);
  content.counts = progress.skipped_in_a_row == 0;
  content.replaces = passing_;
  if (partners)
    content.parts = state_parts(step.whole(), partners->rank());
  else
    content.state = state_tensors(step.whole());
  content.model_bytes = model_bytes();
  content.write_model = [&](const std::string& folder) {
    const Served served(step.whole());
    write_model_folder(folder, setup_.model->card, step.whole(), setup_.config.lora, false,
                       setup_.config.train.save_adapters);
  };
  content.help_model = [&] { step.whole().serve(); };
  checkpoints_.save(content, least_good, partners ? &*partners : nullptr);
  saved_step_ = progress.step;
  passing_ = content.counts ? -1 : progress.step;
  if ((!partners || partners->rank() == 0) && is_own(RunFiles::kLast)) discard(files_.at(RunFiles::kLast));
}

// Writes a model folder of that name atomically, in the place of the previous one.
void CheckpointKeeper::put_model(const std::string& name, const TrainStep& step, bool average) {
  require_own(name);
  const std::string fresh = files_.at(unfinished_name(name));
  try {
    write_model_folder(fresh, setup_.model->card, step.whole(), setup_.config.lora, average,
                       setup_.config.train.save_adapters);
    copy_companions(files_.at(name), fresh);
    seal_folder(fresh, {{kLearnedFrom, to_json(learned_)}});
    replace_folder(fresh, files_.at(name), files_.aside(name));
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
}

void CheckpointKeeper::write_best(const TrainStep& step, bool average, int64_t least_good) {
  checkpoints_.make_room(model_bytes(), least_good);
  put_model(RunFiles::kBest, step, average);
}

void CheckpointKeeper::write_last(const TrainStep& step, bool average) {
  put_model(RunFiles::kLast, step, average);
}

}  // namespace vitrail
