#include <nlohmann/json.hpp>
#include <utility>

#include "api/precision.h"
#include "api/rank_eval.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/environment.h"
#include "cli/field_settings.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "io/config_json.h"
#include "io/find_model.h"
#include "train/eval_data.h"
#include "train/eval_report.h"

namespace vitrail::cli {

namespace {
constexpr size_t kClassRows = 40;

// Holds what the first rank found.
struct Found {
  EvalResult result;
  std::string device;
  size_t nodes = 0;
};

std::optional<Found> run_rank(const EvalWork& work, const InferenceRank& rank, Console& console) {
  EvalRank eval(work, rank,
                {.on_note = [&](auto& text) { console.say(text); },
                 .on_detail = [&](auto& text) { console.detail(text); }});
  const SignalGuard stop;
  Progress progress(console, "eval", "images", work.data.size());
  int64_t shown_so_far = 0;
  const auto show = [&](int64_t done) { progress.advance(done - std::exchange(shown_so_far, done)); };
  EvalResult result = eval.run(show, [&] { return stop.wanted(); });
  if (!rank.team().leads()) return std::nullopt;
  return Found{std::move(result), device_text(eval.plan()), eval.plan().node_count()};
}

EvalWork work_for(const Options& options, const OpenedModel& model, const Dataset& data) {
  EvalWork work{.model = model,
                .data = data,
                .engine = read_engine_options(options),
                .loader = {},
                .prefetch_by_batch = options.origin("loader.prefetch") == Origin::kDefault,
                .device = options.text("device"),
                .against = options.text("against")};
  const OptionSettings settings{options};
  LoaderConfig::fields(work.loader, ReadFields<OptionSettings>{"loader", settings});
  work.engine.batch = batch_for(options, data.size());
  work.engine.cache_folders = cache_places(options, model.card().path);
  return work;
}

void run_over(const Options& options, CommandRanks& ranks) {
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
  const EvalWork work = work_for(options, *model, *data.set);
  ranks.require_same({{"the model", json_text(to_json(card.config))},
                      {"the data's names and labels", std::to_string(data.set->fingerprint())}});
  std::optional<Found> found;
  ranks.run(work.engine, [&](InferenceRank& rank, Console& own) {
    if (std::optional<Found> mine = run_rank(work, rank, own)) found = std::move(mine);
  });
  if (!ranks.leads()) return;
  say_checked(options, found->nodes, console);
  const EvalSubject subject{
      options.text("model"),   data.name, data.part, found->device, options.text("dtype"),
      options.text("against"), card,      *data.set, found->result, data.seen};
  console.print_json(eval_json(subject));
  console.print(eval_text(subject, options.flag("classes") ? data.set->classes().size() : kClassRows));
  console.flush();
  if (!page) return;
  page->write(eval_page(subject, std::string("Vitrail ") + VITRAIL_VERSION));
  page->commit();
  console.say("report: " + options.text("report"));
}

void run_eval(const Options& options, Console& console) {
  on_ranks(options, console, [&](CommandRanks& ranks) { run_over(options, ranks); });
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
       .choices = model_types()},
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
       .options = model_options() + own + rank_options() + engine_options(32),
       .infers = true},
      run_eval};
}

}  // namespace vitrail::cli
