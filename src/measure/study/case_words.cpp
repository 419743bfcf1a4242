// The commands of a study: of a case, which measures, and of the plan that predicts it.
#include "backend/registry.h"
#include "base/error.h"
#include "base/values.h"
#include "measure/study/cases.h"

namespace vitrail {

namespace {

using Words = std::vector<std::string>;

void add(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

void set(Words& words, const std::string& key, const std::string& value) {
  add(words, {"--set", key + "=" + value});
}

Words start_of(const StudyCase& one, const StudyPlaces& places) {
  if (one.transport == "threads" || one.transport == "alone") return {places.program};
  Words words = {places.program, "launch", "-n", std::to_string(one.ranks), "--mpirun"};
  if (one.transport == "nodes") add(words, {"--hosts", hosts_for(places.hosts, one.ranks)});
  return words;
}

// Adds what both kinds of updates are told of the config, and of the device as `device` names it.
void add_config(const StudyConfig& c, const Words& device, Words& words) {
  if (!c.recipe.empty()) add(words, {"--config", c.recipe});
  if (!c.dtype.empty()) add(words, {"--dtype", c.dtype});
  add(words, device);
  add(words, {"--threads", std::to_string(c.threads)});
  for (const std::string& setting : c.settings) add(words, {"--set", setting});
}

// Adds an update on images that stay in memory.
void add_update(const StudyCase& one, const StudyConfig& c, const Words& device, Words& words) {
  if (one.model != kOfRecipe) add(words, {"--model", one.model});
  if (!c.image.empty()) add(words, {"--image", c.image});
  add_config(c, device, words);
  add(words, {"--batch", std::to_string(one.batch)});
}

// Adds an update of a training run.
void add_trained_update(const StudyCase& one, const StudyConfig& c, const Words& device, Words& words) {
  add_config(c, device, words);
  if (one.model != kOfRecipe) set(words, "model.arch", one.model);
  if (!c.image.empty()) set(words, "model.image", c.image);
  set(words, "train.batch", std::to_string(one.global_batch()));
  set(words, "train.accumulation", "1");
}

// The share of the data that the study's own settings leave.
double given_fraction(const StudyConfig& c) {
  const std::string key = "data.fraction=";
  double fraction = 1;
  for (const std::string& setting : c.settings)
    if (setting.starts_with(key)) fraction = parse_number(setting.substr(key.size())).value_or(1);
  return fraction;
}

void add_training(const StudyCase& one, const StudyConfig& c, const std::string& folder, Words& words) {
  add(words, {"train", "--quiet", "--out", folder});
  add_trained_update(one, c, {"--device", one.device}, words);
  set(words, "train.epochs", std::to_string(c.epochs));
  if (one.fraction < 1) set(words, "data.fraction", strf("%.9g", one.fraction * given_fraction(c)));
  set(words, "train.breakdown", "true");
  set(words, "train.tensorboard", "false");
}

void add_steps(const StudyCase& one, const StudyConfig& c, Words& words) {
  add(words, {"bench", "train", "--json"});
  add_update(one, c, {"--device", one.device}, words);
  add(words, {"--steps", std::to_string(c.updates), "--warmup", std::to_string(c.warmup)});
}

}  // namespace

std::vector<std::string> words_of(const StudyCase& one, const StudyConfig& config, const StudyPlaces& places,
                                  const std::string& folder) {
  Words words = start_of(one, places);
  if (one.kind == CaseKind::kAllReduce)
    add(words, {"bench", "dist", "--json", "--seconds", "0.5", "--mb", strf("%g", one.megabytes)});
  else if (one.kind == CaseKind::kTrain)
    add_training(one, config, folder, words);
  else
    add_steps(one, config, words);
  if (one.transport == "threads") add(words, {"--ranks", std::to_string(one.ranks)});
  return words;
}

std::vector<std::string> plan_words_of(const StudyCase& one, const StudyConfig& config,
                                       const std::string& program, const PredictedOn& on) {
  Words words = {program,
                 "plan",
                 "--json",
                 "--cluster",
                 on.network,
                 "--nodes",
                 std::to_string(on.nodes),
                 "--devices",
                 std::to_string(one.ranks / on.nodes)};
  set(words, "mesh.dp", "0");  // the mesh of the run alone, not every one that is sensible
  // A device of the environment would be a second one beside the target.
  const Words device = {"--target", on.target, "--device", host_entry().name};
  if (one.kind == CaseKind::kTrain)
    add_trained_update(one, config, device, words);
  else
    add_update(one, config, device, words);
  return words;
}

}  // namespace vitrail
