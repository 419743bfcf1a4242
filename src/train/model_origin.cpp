#include "train/model_origin.h"

#include <filesystem>

#include "base/run_files.h"
#include "io/config_json.h"
#include "io/find_model.h"
#include "io/sealed_folder.h"
#include "train/trainer.h"

namespace vitrail {

namespace fs = std::filesystem;

namespace {

// Returns the folder of the run that wrote a model: the one named, or the parent of its best/ or of one of
// its checkpoints/; empty when no run did.
std::string run_of(const std::string& model) {
  std::error_code ignored;
  fs::path folder = fs::path(model).lexically_normal();
  for (int up = 0; up < 4; ++up) {
    if (is_run_folder(folder.string()) && fs::exists(folder / RunFiles::kConfig, ignored))
      return folder.string();
    folder = folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path();
    if (folder.empty()) folder = ".";
  }
  return {};
}

// Damaged facts are ignored here: reading the model itself reports the damage.
Json facts_in(const fs::path& folder) {
  try {
    const std::optional<Manifest> manifest = folder_manifest(folder.string());
    return manifest ? manifest->facts : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

DataConfig data_of_run(const std::string& folder) {
  return read_train_config(RunFiles(folder).config()).data;
}

// Returns FORMAT:PLACE with a relative place resolved against `folder`.
std::string seen_from(const std::string& folder, const std::string& name) {
  const size_t place = name.find(':') + 1;  // 0 when there is none
  if (place == 0 || folder.empty()) return name;
  return name.substr(0, place) + (fs::path(folder) / name.substr(place)).string();
}

}  // namespace

// Runs of earlier versions kept no such facts; they are derived from the data while it is available.
static std::optional<LearnedFrom> learned_by(const ModelOrigin& origin) try {
  const RunData run = open_run_data(origin);
  return learned_from(run.config, *run.splits.train);
} catch (const Error&) {
  return std::nullopt;
}

ModelOrigin origin_of(const std::string& model, const FindModel& find) {
  ModelOrigin origin{.run = run_of(model), .started_in = {}, .learned = {}};
  origin.learned = read_learned_from(kept_facts(find(model)));
  if (origin.run.empty()) return origin;
  const Json facts = facts_in(RunFiles(origin.run).latest_checkpoint());
  if (!origin.learned) origin.learned = read_learned_from(facts);
  if (const Json* place = json_find(facts, kStartedIn); place && place->is_string())
    origin.started_in = place->get<std::string>();
  if (!origin.learned) origin.learned = learned_by(origin);
  return origin;
}

RunData open_run_data(const ModelOrigin& origin) {
  RunData here{.config = data_of_run(origin.run), .splits = {}}, there{.config = here.config, .splits = {}};
  there.config.train = seen_from(origin.started_in, here.config.train);
  there.config.val = seen_from(origin.started_in, here.config.val);
  std::optional<Error> problem;
  for (RunData* data : {&here, &there}) {
    try {
      data->splits = open_data(data->config);
      data->unchanged = !origin.learned || is_same(*origin.learned, *data->splits.train);
      if (data->unchanged) return std::move(*data);
    } catch (const Error& error) {
      if (!problem) problem = error;
    }
  }
  if (here.splits.train) return here;
  if (there.splits.train) return there;
  throw Error(*problem);
}

std::optional<DataSplits> divided_as_learned(const LearnedFrom& learned, const std::string& name) try {
  if (!learned.split || open_part_if_any(name, Part::kVal)) return std::nullopt;
  DataConfig config = learned.division;
  config.train = name;
  DataSplits splits = open_data(config);
  if (!splits.val || !is_same(learned, *splits.train)) return std::nullopt;
  return splits;
} catch (const Error&) {
  return std::nullopt;  // other classes, too few images: other data
}

}  // namespace vitrail
