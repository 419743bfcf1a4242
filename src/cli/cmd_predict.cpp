#include "api/classify.h"
#include "api/rank_predict.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/device_choice.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "data/image_list.h"
#include "io/cards/card_text.h"
#include "io/config_json.h"

namespace vitrail::cli {

namespace {

PredictTask chosen_task(const Options& options) {
  VT_REQUIRE(!options.flag("embed") || !options.flag("logits"), ErrorKind::kUsage,
             "--embed gives features and --logits what the head makes of them: one or the other");
  if (options.flag("embed")) return PredictTask::kEmbed;
  return options.flag("logits") ? PredictTask::kLogits : PredictTask::kClassify;
}

void show(const ImageRow& row, const PredictWork& work, const std::vector<TopClass>& top, Console& console) {
  const std::string& path = work.paths[row.index];
  nlohmann::ordered_json json = image_json(path);
  if (work.task == PredictTask::kClassify) {
    json["top"] = top_classes_json(top);
    console.print_json(json);
    return console.print(console.bold(shown(path)) + "\n" + top_classes_text(top, 2));
  }
  json[work.task == PredictTask::kEmbed ? "embedding" : "logits"] =
      std::vector<float>(row.values.begin(), row.values.end());
  console.print_json(json);
  console.print(shown(path) + "\t" + numbers_text(row.values) + "\n");
}

// Images that failed have a row, too. Returns how many nodes a run has.
size_t run_rank(const PredictWork& work, const InferenceRank& rank, const Options& options,
                FailedImages& failed, Console& console) {
  PredictRank predict(work, rank, [&](auto& line) { console.detail(line); });
  const SignalGuard stop;
  Progress progress(console, "predict", "images", std::ssize(work.paths));
  const int64_t classes = options.integer("top-k");
  const PredictTimes times =
      predict.run({.on_row =
                       [&](const ImageRow& row) {
                         if (row.error) return failed.add(work.paths[row.index], *row.error);
                         show(row, work, top_classes(row.values, predict.labels(), classes), console);
                       },
                   .on_batch =
                       [&](size_t images) {
                         console.flush();
                         progress.advance(static_cast<int64_t>(images));
                       },
                   .stop = [&] { return stop.wanted(); }});
  progress.finish();
  if (options.flag("timing"))
    console.say(console.json() ? json_text(to_json(times)) : to_text(times));
  else
    console.detail(to_text(times));
  say_not_turned(predict.not_turned(), console);
  return predict.plan().node_count();
}

void run_over(const Options& options, CommandRanks& ranks) {
  const Clock::time_point start = Clock::now();
  const PredictTask task = chosen_task(options);
  const std::vector<std::string> paths =
      ranks.from_leader(ranks.leads() ? list_images(options.positionals()) : std::vector<std::string>());
  const std::unique_ptr<OpenedModel> model = open_chosen(options, ranks.console());
  PredictWork work{*model,       paths, task, read_engine_options(options), options.flag("exif"),
                   "--threads ", start};
  const ModelCard& card = model->card();
  require_task(task, card, work.engine.dash);
  ranks.console().detail("images: " + preprocess_text(card.preprocess));
  work.engine.batch = batch_for(options, std::ssize(paths));
  work.engine.cache_folders = cache_places(options, card.path);
  ranks.require_same({{"the model", json_text(to_json(card.config))}, {"the task", static_cast<int>(task)}});
  FailedImages failed(ranks.console(), paths.size());  // those of all ranks, told by the first
  size_t nodes = 0;
  ranks.run(work.engine, [&](InferenceRank& rank, Console& own) {
    const size_t found = run_rank(work, rank, options, failed, own);
    if (rank.team().leads()) nodes = found;
  });
  failed.throw_if_any();
  say_checked(options, nodes, ranks.console());
}

void run_predict(const Options& options, Console& console) {
  on_ranks(options, console, [&](CommandRanks& ranks) { run_over(options, ranks); });
}
}  // namespace

Command predict_command() {
  const std::vector<OptionSpec> own = {
      {.name = "top-k",
       .help = "classes to show",
       .kind = ValueKind::kInteger,
       .metavar = "K",
       .letter = 'k',
       .fallback = "5",
       .least = 1,
       .most = 1 << 22},
      {.name = "embed",
       .help = "the pooled features before the head instead of classes",
       .kind = ValueKind::kFlag},
      {.name = "logits",
       .help = "the head's output for every class instead of probabilities",
       .kind = ValueKind::kFlag},
      exif_option(),
      {.name = "timing",
       .help = "say at the end where the time went; with --json as JSON, on stderr",
       .kind = ValueKind::kFlag},
      cache_option()};
  return {
      {.name = "predict",
       .summary = "what is on an image: the likeliest classes with probabilities",
       .examples = {{"predict cat.jpg", "with the bundled DeiT-Tiny, ImageNet's 1000 classes"},
                    {"predict -m vit_folder photos/ -k 1", "every image below a folder, the best class only"},
                    {"predict -m model.safetensors --arch vit_base_patch16_224 cat.jpg",
                     "a bare weight file, told what it is"},
                    {"predict photos/ --json | head", "one JSON line an image"},
                    {"predict photos/ --batch 64 --device cuda --dtype bf16", "on a GPU"},
                    {"predict photos/ --timing",
                     "and where the time went: loading, decoding, computing, waiting"},
                    {"predict photos/ --ranks 2",
                     "the images split over two ranks; launch -n 2 for processes"},
                    {"predict photos/ --dtype int8",
                     "smaller weights in memory; eval --against f32 tells what it costs"},
                    {"predict --embed cat.jpg dog.jpg", "features for search and clustering"},
                    {"predict --logits --json cat.jpg", "what the head gives, class by class"},
                    {"predict @list.txt", "paths from a file, one a line"},
                    {"predict - < list.txt", "paths from stdin"}},
       .options = model_options() + own + rank_options() + engine_options(8),
       .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}},
       .infers = true},
      run_predict};
}

}  // namespace vitrail::cli
