#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/classify.h"
#include "api/predictor.h"
#include "base/file.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/field_settings.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "io/find_model.h"
#include "telemetry/format.h"
#include "train/eval_data.h"
#include "train/eval_report.h"

namespace vitrail::cli {

namespace {
constexpr size_t kClassRows = 40;
constexpr int64_t kChunk = 2;  // images a decoding thread takes at a time

// Evaluation augments nothing, so as many threads decode as compute, on the same cores.
LoaderConfig loader_config(const Options& options, const EngineOptions& engine) {
  LoaderConfig loader;
  const OptionSettings settings{options};
  LoaderConfig::fields(loader, ReadFields<OptionSettings>{"loader", settings});
  if (loader.workers == 0) loader.workers = processor_threads(engine.threads, engine.isa);
  return loader;
}

LoaderSettings loader_settings(const Options& options, const ModelCard& card, int64_t batch,
                               Console& console) {
  LoaderSettings settings;
  settings.loader = loader_config(options, read_engine_options(options));
  if (options.origin("loader.prefetch") == Origin::kDefault)
    settings.loader.prefetch = batches_ahead(batch, settings.loader.workers);
  settings.chunk = kChunk;
  settings.preprocess = card.preprocess;
  settings.micro_batch = batch;
  settings.channels = card.config.channels;
  settings.classes = card.config.classes;
  settings.on_bad = [&console](const BadSample& bad) {
    console.say("skipped " + shown(bad.name) + ": " + bad.reason);
  };
  return settings;
}

// Chooses the loss that fits the model's scores; data with several labels an image allows one only.
LossKind loss_for(const Dataset& data, const ModelCard& card, Console& console) {
  const bool alone = card.scores == ScoreKind::kSigmoid;
  if (!alone && !data.multi_label()) return LossKind::kSoftmax;
  console.say(alone ? "the model scores each class on its own: the loss is bce_mean"
                    : "the data gives several labels an image: the loss is bce_mean");
  return LossKind::kSigmoidMean;
}

// Wraps the model as the callback of evaluate(); `logits` must live as long as the callback.
Forward forward_of(Predictor& predictor, std::vector<float>& logits) {
  return [&](std::span<const float> images, int64_t count) -> std::span<const float> {
    logits = predictor.run(PredictTask::kLogits, images, count, Remainder::kPadded);
    require_finite(logits, "logits");
    return logits;
  };
}

// Evaluates the model; `other` is the same model computed in the type that --against names, or null.
EvalResult run_over(const Dataset& data, const Options& options, Predictor& model, Predictor* other,
                    Console& console) {
  const ModelCard& card = model.card();
  const std::unique_ptr<Loader> loader =
      make_eval_loader(data, loader_settings(options, card, model.batch(), console));
  const SignalGuard stop;
  Progress progress(console, "eval", "images", data.size());
  std::vector<float> logits, other_logits;
  int64_t shown_so_far = 0;
  const EvalOptions how{.loss = loss_for(data, card, console),
                        .progress =
                            [&](int64_t done) {
                              progress.advance(done - shown_so_far);
                              shown_so_far = done;
                            },
                        .stop = [&] { return stop.wanted(); },
                        .against = other ? forward_of(*other, other_logits) : Forward()};
  EvalResult result = evaluate(data, *loader, forward_of(model, logits), how);
  console.detail(
      strf("%s images in %s, of which %s waiting for them; decoding beside it %s of processor time",
           format_integer(result.count).c_str(), format_seconds(result.seconds).c_str(),
           format_seconds(loader->wait_seconds()).c_str(), format_seconds(loader->work_seconds()).c_str()));
  return result;
}

std::unique_ptr<Predictor> model_against(const Options& options, const OpenedModel& model,
                                         EngineOptions settings, const Dataset& data) {
  if (!options.given("against")) return nullptr;
  if (data.multi_label())
    throw Error(ErrorKind::kUsage, "--against compares the first class of an image, these have several",
                "two runs of eval, one with each --dtype");
  set_precision(options.text("against"), options.text("device"), settings, "--");
  return std::make_unique<Predictor>(model, settings, std::vector{PredictTask::kLogits});
}

void run_eval(const Options& options, Console& console) {
  std::optional<AtomicFile> page;  // opened first, so that a path that cannot be written fails at once
  if (options.given("report")) page.emplace(options.text("report"));
  EvalData data = open_eval_data({.model = options.text("model"),
                                  .data = options.text("data"),
                                  .part = options.text("part"),
                                  .find = [](auto& name) { return find_model(name, model_places()); },
                                  .say = [&](auto& text) { console.say(text); }});
  const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
  const ModelCard& card = model->card();
  for (const std::string& line : card.warnings) console.say("warning: " + line);
  data.set = fit_classes(std::move(data.set), card, [&](auto& text) { console.say(text); });
  EngineOptions settings = read_engine_options(options);
  settings.batch = batch_for(options, data.set->size());
  settings.cache_folders = cache_places(options, card.path);
  const LoaderSettings loader = loader_settings(options, card, settings.batch, console);
  settings.beside = {Loader::staging_bytes(loader), decoder_bytes(*data.set), loader.loader.workers,
                     "--set loader.workers="};
  Predictor predictor(*model, settings, {PredictTask::kLogits});
  const Engine& engine = predictor.engine();
  if (!engine.cache_note().empty()) console.detail(engine.cache_note());
  const std::unique_ptr<Predictor> other = model_against(options, *model, settings, *data.set);
  const EvalResult result = run_over(*data.set, options, predictor, other.get(), console);
  say_checked(options, engine, console);
  const EvalSubject subject{options.text("model"),
                            data.name,
                            data.part,
                            device_text(engine.plan()),
                            options.text("dtype"),
                            options.text("against"),
                            card,
                            *data.set,
                            result,
                            data.seen};
  console.print_json(eval_json(subject));
  console.print(eval_text(subject, options.flag("classes") ? data.set->classes().size() : kClassRows));
  console.flush();
  if (!page) return;
  page->write(eval_page(subject, std::string("Vitrail ") + VITRAIL_VERSION));
  page->commit();
  console.say("report: " + options.text("report"));
}

}  // namespace

Command eval_command() {
  std::vector<OptionSpec> own = {
      {.name = "data",
       .help =
           "FORMAT:PLACE, as folder:DIR or cifar10:DIR; a run's folder as model needs none, and of its own "
           "training data takes the validation part",
       .metavar = "DATA"},
      {.name = "part",
       .help = "which part of the data; the validation part, or all where there is none, otherwise",
       .metavar = "NAME",
       .choices = {"val", "train", "all"}},
      {.name = "against",
       .help = "also run the model in this type, and tell how often the two agree",
       .metavar = "TYPE",
       .choices = {"f32", "bf16", "f16", "int8", "fp8", "tf32"}},
      {.name = "report", .help = "write a page with tables and images", .metavar = "FILE"},
      {.name = "classes", .help = "every class, not the first 40", .kind = ValueKind::kFlag},
      cache_option()};
  const LoaderConfig defaults;
  std::vector<FieldSpec> loader;
  LoaderConfig::fields(defaults, ListFields{"loader", loader});
  own = own + options_of(loader);
  return {
      {.name = "eval",
       .summary = "how good a model is on a dataset: top-1 and top-5, classes, confusions, worst images",
       .examples = {{"eval -m runs/pets", "a run's best model on the run's own validation data"},
                    {"eval -m model_folder --data folder:photos --report out.html",
                     "any model and data whose classes agree; also as a page"},
                    {"eval -m runs/demo --data cifar10:data --part train --json",
                     R"({"top1", "top5", "count", "loss", "classes": [{"name", "count", "top1"...}]...})"},
                    {"eval -m runs/pets --batch 64 --device cuda --dtype bf16", "on a GPU"},
                    {"eval -m runs/pets --dtype int8 --against f32", "what int8 costs in accuracy"},
                    {"eval -m runs/pets --set loader.on_error=skip", "past images that cannot be read"}},
       .options = model_options() + own + engine_options(32)},
      run_eval};
}

}  // namespace vitrail::cli
