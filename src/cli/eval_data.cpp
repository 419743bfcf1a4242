#include "cli/eval_data.h"

#include <filesystem>

#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/field_settings.h"
#include "cli/model_path.h"
#include "cli/shown.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

namespace {

// The folder of the run that wrote a model: the one named, or that of its best/ or one of its checkpoints/;
// empty when no run did.
std::string run_of(const std::string& model) {
  std::error_code ignored;
  fs::path folder = fs::path(model).lexically_normal();
  for (int up = 0; up < 3; ++up) {
    if (is_run_folder(folder.string()) && fs::exists(folder / "config.json", ignored)) return folder.string();
    folder = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
    if (folder.empty()) folder = ".";
  }
  return {};
}

DataConfig data_of_run(const std::string& folder) {
  const std::vector<std::string> arguments = {"--config", folder + "/config.json"};
  const Options run = parse_options(
      train_command().spec, arguments, [](const std::string&) -> const char* { return nullptr; },
      read_config_file);
  DataConfig config;
  DataConfig::fields(config, AssignFields{"data", run});
  return config;
}

// What a run has learned from and what it kept for validation.
struct RunData {
  DataConfig config;
  DataSplits splits;
};

EvalData validation_of(RunData& run, const std::string& folder) {
  VT_REQUIRE(run.splits.val, ErrorKind::kUsage, "%s had no validation data: --data names some",
             folder.c_str());
  return {std::move(run.splits.val), run.config.val.empty() ? run.config.train : run.config.val, "val"};
}

// A run whose data has gone can still be evaluated on other data; that nothing can be compared is said.
std::optional<RunData> open_run_data(const std::string& folder, Console& console) {
  try {
    RunData run{.config = data_of_run(folder), .splits = {}};
    run.splits = open_data(run.config);
    return run;
  } catch (const Error& error) {
    console.detail("the run's training data cannot be compared with these images: " +
                   std::string(error.what()));
    return std::nullopt;
  }
}

EvalData open_named(const std::string& name, const std::string& part) {
  if (part == "train") return {open_dataset(name, Part::kTrain), name, "train"};
  if (part == "all") return {open_dataset(name, Part::kAll), name, "all"};
  if (part == "val") return {open_dataset(name, Part::kVal), name, "val"};
  if (auto val = open_part_if_any(name, Part::kVal)) return {std::move(val), name, "val"};
  return {open_dataset(name, Part::kAll), name, "all"};
}

// Whether a run split its validation part off this very data, whatever name the data goes by here.
bool is_split_by(const RunData& run, const Dataset& data) {
  return run.config.val.empty() && run.splits.val &&
         open_dataset(run.config.train, Part::kTrain)->fingerprint() == data.fingerprint() &&
         overlap_with(data, *run.splits.train).found > 0;
}

void say_seen(EvalData& data, const RunData& run, Console& console) {
  data.seen = overlap_with(*data.set, *run.splits.train);
  if (data.seen->found == 0) return;
  const bool all = data.seen->looked_at == data.set->size();
  console.say(
      strf("warning: the run has learned from %s%s of these images%s: the result says little about "
           "new ones",
           all ? "" : "about ", format_percent(data.seen->share()).c_str(),
           all ? "" : strf(" (%lld looked at)", static_cast<long long>(data.seen->looked_at)).c_str()));
}

// All of the data; nothing when it has a validation part of its own.
std::unique_ptr<Dataset> undivided(const std::string& name) {
  return open_part_if_any(name, Part::kVal) ? nullptr : open_dataset(name, Part::kAll);
}

}  // namespace

EvalData open_eval_data(const Options& options, Console& console) {
  const std::string &model = options.text("model"), &name = options.text("data"),
                    &part = options.text("part");
  if (name.empty() && !is_run_folder(model))
    throw Error(ErrorKind::kUsage, "--data is missing: which pictures?",
                "--data folder:DIR, cifar10:DIR, tar:GLOB...; only a run's folder knows its own");
  if (name.empty()) {
    RunData run{.config = data_of_run(model), .splits = {}};
    run.splits = open_data(run.config);
    EvalData data = validation_of(run, model);
    say_seen(data, run, console);
    return data;
  }
  const std::string folder = run_of(model);
  std::optional<RunData> run = folder.empty() ? std::nullopt : open_run_data(folder, console);
  EvalData data;
  const auto whole = run && part != "train" && part != "all" ? undivided(name) : nullptr;
  if (whole && is_split_by(*run, *whole)) {
    data = validation_of(*run, folder);
    console.say(
        strf("%s is what this run was trained on: taking the %s it kept for validation (--part all "
             "takes every image)",
             shown(name).c_str(), format_count(data.set->size(), "image").c_str()));
  } else {
    data = open_named(name, part);
  }
  if (run) say_seen(data, *run, console);
  return data;
}

}  // namespace vitrail::cli
