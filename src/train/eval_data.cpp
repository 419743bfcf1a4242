#include "train/eval_data.h"

#include <algorithm>

#include "base/text.h"
#include "data/datasets/view.h"
#include "io/find_model.h"
#include "telemetry/format.h"
#include "train/model_origin.h"
#include "train/seen_images.h"

namespace vitrail {

namespace {
using Log = std::function<void(const std::string&)>;

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

EvalData validation_of(RunData& run, const std::string& folder) {
  VT_REQUIRE(run.splits.val, ErrorKind::kUsage, "%s had no validation data: --data names some",
             folder.c_str());
  return {std::move(run.splits.val), run.config.val.empty() ? run.config.train : run.config.val, "val"};
}

EvalData open_named(const std::string& name, const std::string& part) {
  if (part == "train") return {open_dataset(name, Part::kTrain), name, "train"};
  if (part == "all") return {open_dataset(name, Part::kAll), name, "all"};
  if (part == "val") return {open_dataset(name, Part::kVal), name, "val"};
  if (auto val = open_part_if_any(name, Part::kVal)) return {std::move(val), name, "val"};
  return {open_dataset(name, Part::kAll), name, "all"};
}

void tell(EvalData& data, const SeenImages& seen, const Log& log) {
  data.seen = seen.overlap;
  if (!seen.share.empty())
    log("warning: the model has learned from " + seen.share +
        " of these images: the result says little about new ones");
  if (!seen.unknown.empty()) log(seen.unknown);
}

void log_seen(EvalData& data, const Dataset& train, const ModelOrigin& origin, const Log& log) {
  const std::vector<EarlierImages> none;
  tell(data, seen_images(*data.set, train, origin.learned ? origin.learned->earlier : none), log);
}

// Compares a part of the run's own data with its training part. Where that is no longer what the run has
// learned from, marks are all that is left to compare with.
void log_seen_of_own(EvalData& data, const RunData& run, const Dataset& train, const ModelOrigin& origin,
                     const Log& log) {
  if (run.unchanged) return log_seen(data, train, origin, log);
  log(
      strf("warning: %s has changed since the run learned from it: seen_in_training is not certain, it comes "
           "from the marks that the model keeps of some images",
           shown(run.config.train).c_str()));
  tell(data, seen_by_marks(*data.set, *origin.learned), log);
}

EvalData training_of(RunData& run, const ModelOrigin& origin, const Log& log) {
  EvalData data{std::move(run.splits.train), run.config.train, "train"};
  log_seen_of_own(data, run, *data.set, origin, log);
  return data;
}

// Compares the images that the model has learned from with those it is to be measured on.
void compare_with_training(EvalData& data, const ModelOrigin& origin, const Log& log) {
  std::string why = "nothing beside it says what it was trained on";
  if (!origin.run.empty()) {
    try {
      const RunData run = open_run_data(origin);
      if (run.unchanged) return log_seen(data, *run.splits.train, origin, log);
      why = "the run's data has changed since it was trained";
    } catch (const Error& error) {
      why = error.what();
    }
  }
  if (origin.learned) return tell(data, seen_by_marks(*data.set, *origin.learned), log);
  log("whether the model has learned from these images is not known: " + why);
}

// Opens the named data; where it is what the run learned from, the part that the run split off for
// validation.
EvalData open_asked(const std::string& name, const std::string& part, const ModelOrigin& origin,
                    const Log& log) {
  std::optional<DataSplits> own;
  if (origin.learned && part != "train" && part != "all") own = divided_as_learned(*origin.learned, name);
  if (!own) {
    EvalData data = open_named(name, part);
    compare_with_training(data, origin, log);
    return data;
  }
  EvalData data{std::move(own->val), name, "val"};
  log(
      strf("%s is what this model was trained on (by names, labels and contents): taking the %s kept for "
           "validation (--part all takes every image)",
           shown(name).c_str(), format_count(data.set->size(), "image").c_str()));
  log_seen(data, *own->train, origin, log);
  return data;
}

}  // namespace

EvalData open_eval_data(const EvalRequest& request) {
  const std::string &model = request.model, &name = request.data;
  const Log log = request.say ? request.say : [](const std::string&) {};
  if (name.empty() && !is_run_folder(model))
    throw Error(ErrorKind::kUsage, "--data is missing: which images?",
                "--data folder:DIR, cifar10:DIR, tar:GLOB...; only a run's folder knows its own");
  if (name.empty() && request.part == "all")
    throw Error(ErrorKind::kUsage, "--part all without --data: a run's folder knows its parts alone",
                "--part train or --part val; --data names all images, as folder:DIR");
  ModelOrigin origin = origin_of(model, request.find);
  if (!name.empty()) return open_asked(name, request.part, origin, log);
  origin.run = model;
  RunData run = open_run_data(origin);
  if (request.part == "train") return training_of(run, origin, log);
  EvalData data = validation_of(run, model);
  log_seen_of_own(data, run, *run.splits.train, origin, log);
  return data;
}

std::unique_ptr<Dataset> fit_classes(std::unique_ptr<Dataset> data, const ModelCard& card,
                                     const std::function<void(const std::string&)>& say) {
  const std::vector<std::string>& names = data->classes();
  if (static_cast<size_t>(card.config.classes) != names.size())
    throw Error(ErrorKind::kData,
                strf("the model knows %lld classes, the data has %zu",
                     static_cast<long long>(card.config.classes), names.size()),
                "a model trained for these classes; vitrail inspect and vitrail data stats list both sides");
  if (card.labels == names) return data;
  if (card.labels.empty()) {
    say("the model does not name its classes: they are taken in the data's order");
    return data;
  }
  if (sorted(names) == sorted(card.labels)) {
    say("the model numbers the classes differently: matched by name");
    return align_classes(std::move(data), card.labels);
  }
  const auto [model, set] = std::mismatch(card.labels.begin(), card.labels.end(), names.begin());
  say(strf("warning: class %lld is %s to the model and %s in the data; classes are matched by number",
           static_cast<long long>(model - card.labels.begin()), quoted(*model).c_str(),
           quoted(*set).c_str()));
  return data;
}

}  // namespace vitrail
