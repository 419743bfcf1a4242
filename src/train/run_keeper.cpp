#include "train/run_keeper.h"

#include <filesystem>

#include "io/checkpoint/durable.h"
#include "io/checkpoint/facts.h"
#include "io/sealed_folder.h"
#include "telemetry/run_log.h"

namespace vitrail {

namespace {

// A difference between a checkpoint's facts and this run's that is told rather than refused.
bool may_change(const std::string& key) {
  constexpr std::string_view kConfig = "config.";
  if (key.starts_with("machine.")) return true;
  return key.starts_with(kConfig) && change_of(key.substr(kConfig.size())) == Change::kTold;
}

}  // namespace

RunKeeper::RunKeeper(const TrainPlace& place, const RunSetup& setup, Json machine, Tell tell)
    : place_(place),
      setup_(setup),
      machine_(std::move(machine)),
      tell_(std::move(tell)),
      checkpoints_(place.folder, setup.config.checkpoint) {}

void RunKeeper::refuse_foreign_run() const {
  if (place_.resume != ResumeMode::kFresh || checkpoints_.steps().empty()) return;
  throw Error(ErrorKind::kUsage, place_.folder + " already holds a run with checkpoints",
              "--resume goes on with it; --out names another folder");
}

void RunKeeper::prepare() {
  for (const std::string& text : checkpoints_.prepare()) tell_(text);
}

Json RunKeeper::facts(const Progress& progress) const {
  const Dataset& data = *setup_.data.train;
  return {{"progress", to_json(progress)},
          {"config", result_identity(setup_.config)},
          {"machine", machine_},
          {"data",
           {{"fingerprint", strf("%016llx", static_cast<unsigned long long>(data.fingerprint()))},
            {"size", data.size()}}}};
}

std::optional<Progress> RunKeeper::restore_newest(TrainStep& step) {
  std::vector<std::string> complaints;
  const std::optional<OpenedCheckpoint> found = checkpoints_.newest_good(&complaints);
  for (const std::string& text : complaints) tell_("checkpoint passed over: " + text);
  if (!complaints.empty() && (!found || place_.resume == ResumeMode::kStrict))
    throw Error(ErrorKind::kData, complaints.front(),
                found ? "--resume without =strict falls back to an older one"
                      : "no other is left; to begin again, remove " + checkpoints_.folder() +
                            " or name another folder");
  if (!found) return std::nullopt;
  require_same_run(found->facts);
  restore_state(*found->state, step.store());
  step.refresh();
  saved_step_ = found->step;
  return progress_from(found->facts);
}

void RunKeeper::require_same_run(const Json& saved) const {
  Json now = facts({}), before = saved;
  now.erase("progress");
  before.erase("progress");
  std::string refused;
  for (const FactDifference& difference : compare_facts(before, now)) {
    if (may_change(difference.key))
      tell_("changed since the checkpoint: " + to_string(difference));
    else
      refused += "\n  " + to_string(difference);
  }
  if (!refused.empty())
    throw Error(ErrorKind::kConfig, "the checkpoint was made by another run:" + refused,
                "resume with the config the run was started with, or train into another folder");
}

void RunKeeper::save(const Progress& progress, const TrainStep& step) {
  CheckpointContent content;
  content.step = progress.step;
  content.facts = facts(progress);
  content.state = state_tensors(step.store());
  const ModelCard& card = setup_.model->card;
  content.model_bytes = static_cast<uint64_t>(count_params(card.config)) * size_of(DType::kF32);
  content.write_model = [&](const std::string& folder) {
    write_model_folder(folder, card, step.store(), setup_.config.lora, false,
                       setup_.config.train.save_adapters);
  };
  checkpoints_.save(content);
  saved_step_ = progress.step;
}

void RunKeeper::write_best(const TrainStep& step, bool average) {
  const std::string fresh = place_.folder + "/.tmp-best";
  std::error_code ignored;
  std::filesystem::remove_all(fresh, ignored);
  try {
    write_model_folder(fresh, setup_.model->card, step.store(), setup_.config.lora, average,
                       setup_.config.train.save_adapters);
    seal_folder(fresh);
    replace_folder(fresh, place_.folder + "/best", place_.folder + "/.tmp-best-old");
  } catch (...) {
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
}

}  // namespace vitrail
