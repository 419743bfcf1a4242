#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/classify.h"
#include "api/predictor.h"
#include "api/row_exchange.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/field_settings.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "io/config_json.h"
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

LoaderSettings loader_settings(const Options& options, const ModelCard& card, const EngineOptions& engine) {
  LoaderSettings settings;
  settings.loader = loader_config(options, engine);
  settings.take(share_of(engine.batch, engine.distribution.mesh, 1, "a batch"));
  if (options.origin("loader.prefetch") == Origin::kDefault)
    settings.loader.prefetch = batches_ahead(settings.micro_batch, settings.loader.workers);
  settings.chunk = kChunk;
  settings.preprocess = card.preprocess;
  settings.channels = card.config.channels;
  settings.classes = card.config.classes;
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

std::unique_ptr<Predictor> model_against(const Options& options, const OpenedModel& model,
                                         EngineOptions settings, const Dataset& data) {
  if (!options.given("against")) return nullptr;
  if (data.multi_label())
    throw Error(ErrorKind::kUsage, "--against compares the first class of an image, these have several",
                "two runs of eval, one with each --dtype");
  set_precision(options.text("against"), options.text("device"), settings, "--");
  return std::make_unique<Predictor>(model, settings, std::vector{PredictTask::kLogits});
}

// What the ranks of an evaluation have in common.
struct EvalWork {
  const Options& options;
  const OpenedModel& model;
  const Dataset& data;
  EngineOptions engine;
  std::optional<EvalResult> result = std::nullopt;  // these two are the first rank's
  std::string device = {};
  size_t nodes = 0;
};

// One rank of an evaluation. Each gets the result of all images; the first one shows it.
class EvalRank {
 public:
  EvalRank(EvalWork& work, InferenceRank& rank)
      : work_(work),
        rank_(rank),
        console_(rank.console),
        engine_(rank.on_rank(work.engine)),
        loader_(loader_settings(work.options, work.model.card(), engine_)) {
    loader_.on_bad = [this](const BadSample& bad) {
      skipped_.push_back("skipped " + shown(bad.name) + ": " + bad.reason);
      if (rank_.team().alone()) tell_skipped();
    };
    engine_.beside = {Loader::staging_bytes(loader_), decoder_bytes(work.data), loader_.loader.workers,
                      "--set loader.workers="};
    model_ = std::make_unique<Predictor>(work.model, engine_, std::vector{PredictTask::kLogits});
    if (!model_->engine().cache_note().empty()) console_.detail(model_->engine().cache_note());
    other_ = model_against(work.options, work.model, engine_, work.data);
  }

  void run() {
    const Dataset& data = work_.data;
    const std::unique_ptr<Loader> loader = make_eval_loader(data, loader_);
    const SignalGuard stop;
    const Team team = rank_.team();
    Progress progress(console_, "eval", "images", data.size());
    std::vector<float> logits, other_logits;
    int64_t shown_so_far = 0;
    EvalOptions how{.loss = loss_for(data, work_.model.card(), console_),
                    .progress =
                        [&](int64_t done) {
                          if (!team.alone()) tell_skipped();
                          progress.advance(done - shown_so_far);
                          shown_so_far = done;
                        },
                    .stop = [&] { return team.any(stop.wanted()); },
                    .against = other_ ? forward_of(*other_, other_logits) : Forward()};
    if (!team.alone())
      how.gather = [&](const EvalRows& mine) {
        return rows_of_all(team, engine_.distribution.mesh, engine_.batch, mine);
      };
    EvalResult result = evaluate(data, *loader, forward_of(*model_, logits), how);
    console_.detail(
        strf("%s images in %s, of which %s waiting for them; decoding beside it %s of processor time",
             format_integer(result.count).c_str(), format_seconds(result.seconds).c_str(),
             format_seconds(loader->wait_seconds()).c_str(), format_seconds(loader->work_seconds()).c_str()));
    if (!team.leads()) return;
    work_.result = std::move(result);
    work_.device = device_text(model_->engine().plan());
    work_.nodes = model_->engine().plan().program.nodes.size();
  }

 private:
  // Tells of the images that ranks could not read, in the order of the data. A loader knows of its own rank's
  // alone, so whether they are too many is counted here, too.
  void tell_skipped() {
    BatchRows mine;
    mine.notes = std::exchange(skipped_, {});
    const std::vector<std::string> all = exchange_.all(std::move(mine)).notes;
    for (const std::string& text : all) console_.say(text);
    bad_ += static_cast<double>(all.size());
    const double share = loader_.loader.max_bad_fraction;
    if (rank_.team().alone() || bad_ <= std::ceil(share * static_cast<double>(work_.data.size()))) return;
    throw Error(ErrorKind::kData,
                strf("%.0f samples could not be read; the last: %s", bad_, all.back().c_str()),
                strf("loader.max_bad_fraction, now %g, says how many may be skipped", share));
  }

  EvalWork& work_;
  InferenceRank& rank_;
  Console& console_;
  EngineOptions engine_;
  LoaderSettings loader_;
  RowExchange exchange_{rank_.partners()};
  std::unique_ptr<Predictor> model_, other_;
  std::vector<std::string> skipped_;
  double bad_ = 0;
};

void run_over(const Options& options, InferenceRanks& ranks) {
  Console& console = ranks.console();
  std::optional<AtomicFile> page;  // opened first, so that a path that cannot be written fails at once
  if (options.given("report") && ranks.leads()) page.emplace(options.text("report"));
  EvalData data = open_eval_data({.model = options.text("model"),
                                  .data = options.text("data"),
                                  .part = options.text("part"),
                                  .find = [](auto& name) { return find_model(name, model_places()); },
                                  .say = [&](auto& text) { console.say(text); }});
  const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
  const ModelCard& card = model->card();
  for (const std::string& line : card.warnings) console.say("warning: " + line);
  data.set = fit_classes(std::move(data.set), card, [&](auto& text) { console.say(text); });
  EvalWork work{
      .options = options, .model = *model, .data = *data.set, .engine = read_engine_options(options)};
  work.engine.batch = batch_for(options, data.set->size());
  work.engine.cache_folders = cache_places(options, card.path);
  ranks.require_same({{"the model", json_text(to_json(card.config))},
                      {"the data's names and labels", std::to_string(data.set->fingerprint())}});
  ranks.run(work.engine, [&](InferenceRank& rank) { EvalRank(work, rank).run(); });
  if (!ranks.leads()) return;
  say_checked(options, work.nodes, console);
  const EvalSubject subject{
      options.text("model"),   data.name, data.part, work.device,  options.text("dtype"),
      options.text("against"), card,      *data.set, *work.result, data.seen};
  console.print_json(eval_json(subject));
  console.print(eval_text(subject, options.flag("classes") ? data.set->classes().size() : kClassRows));
  console.flush();
  if (!page) return;
  page->write(eval_page(subject, std::string("Vitrail ") + VITRAIL_VERSION));
  page->commit();
  console.say("report: " + options.text("report"));
}

void run_eval(const Options& options, Console& console) {
  on_ranks(options, console, [&](InferenceRanks& ranks) { run_over(options, ranks); });
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
                    {"eval -m runs/pets --mesh dp=2,tp=3",
                     "on six ranks: three parts of a model of three heads, two of each batch"},
                    {"eval -m runs/pets --dtype int8 --against f32", "what int8 costs in accuracy"},
                    {"eval -m runs/pets --set loader.on_error=skip", "past images that cannot be read"}},
       .options = model_options() + own + rank_options() + engine_options(32)},
      run_eval};
}

}  // namespace vitrail::cli
