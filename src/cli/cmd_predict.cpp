#include "api/classify.h"
#include "api/predictor.h"
#include "api/row_exchange.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/timing.h"
#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "cli/rank_choice.h"
#include "io/cards/card_text.h"
#include "io/config_json.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

// What the ranks of a prediction have in common.
struct PredictWork {
  PredictWork(const Options& given, CommandRanks& ranks)
      : options(given),
        start(Clock::now()),
        paths(ranks.from_leader([&] { return given_images(given); })),
        task(given.flag("embed")    ? PredictTask::kEmbed
             : given.flag("logits") ? PredictTask::kLogits
                                    : PredictTask::kClassify),
        model(open_chosen(given, ranks.console())),
        engine(read_engine_options(given)),
        failed(ranks.console(), paths.size()) {
    const ModelCard& card = model->card();
    if (card.config.classes == 0 && task != PredictTask::kEmbed)
      throw Error(ErrorKind::kData, "this model has no classes", "--embed gives its features");
    ranks.console().detail("images: " + preprocess_text(card.preprocess));
    engine.batch = batch_for(given, std::ssize(paths));
    engine.cache_folders = cache_places(given, card.path);
    ranks.require_same(
        {{"the model", json_text(to_json(card.config))}, {"the task", static_cast<int>(task)}});
  }

  const Options& options;
  Clock::time_point start;
  std::vector<std::string> paths;
  PredictTask task;
  std::unique_ptr<OpenedModel> model;
  EngineOptions engine;
  FailedImages failed;  // shown by the first rank
  size_t nodes = 0;     // of a checked run
};

// One rank of a prediction: it computes its images and, as the first one, shows all.
class PredictRank {
 public:
  PredictRank(PredictWork& work, const InferenceRank& rank, Console& console)
      : work_(work), options_(work.options), rank_(rank), console_(console), exchange_(rank.partners()) {
    const ModelCard& card = work.model->card();
    EngineOptions engine = rank.on_rank(work.engine);
    StreamSettings images = stream_settings(card, engine, options_.flag("exif"));
    images.threads_option = "--threads ";
    engine.beside = ImageStream::memory(work.paths, images);
    // The first images are decoded while the parameters are read.
    engine.when_it_fits = [&] { stream_ = std::make_unique<ImageStream>(work.paths, images); };
    predictor_ = std::make_unique<Predictor>(*work.model, engine, std::vector{work.task});
    if (!predictor_->engine().cache_note().empty()) console_.detail(predictor_->engine().cache_note());
    console_.detail("running on " + device_text(predictor_->engine().plan()));
    start_seconds_ = seconds_since(work.start);
  }

  void run() {
    const SignalGuard stop;
    const Team team = rank_.team();
    const size_t total = work_.paths.size();
    Progress progress(console_, "predict", "images", std::ssize(work_.paths));
    std::vector<float> rows;  // of the batch being shown
    for (size_t done = 0; !stream_->done();) {
      SignalGuard::check(team.any(stop.wanted()), done, total);
      const ImageBatch batch = stream_->next();
      BatchRows mine{predictor_->run(work_.task, batch, work_.paths, Remainder::kPadded, rows), batch.notes};
      const BatchRows all = exchange_.all(std::move(mine));
      for (const std::string& note : all.notes) console_.detail(note);
      not_turned_ += all.notes.size();
      if (team.leads())
        for (const ImageRow& row : all.rows) show(row);
      console_.flush();
      done += batch.of_all;
      progress.advance(static_cast<int64_t>(batch.of_all));
    }
    progress.finish();
    say_times(progress.seconds());
    say_not_turned(not_turned_, console_);
    if (team.leads()) work_.nodes = predictor_->engine().plan().program.nodes.size();
  }

 private:
  void say_times(double total) {
    const PredictTimes times{.images = work_.paths.size(),
                             .batch = predictor_->batch(),
                             .threads = predictor_->engine().plan().device.threads,
                             .seconds = total,
                             .start = start_seconds_,
                             .compute = predictor_->compute_seconds(),
                             .wait = stream_->wait_seconds(),
                             .decode = stream_->decode_seconds()};
    const bool asked = options_.flag("timing");
    if (asked && console_.json()) return console_.say(json_text(to_json(times)));
    if (asked)
      console_.say(to_text(times));
    else
      console_.detail(to_text(times));
  }

  // Shows rows in the order of the list; images that failed have a row, too.
  void show(const ImageRow& row) {
    const std::string& path = work_.paths[row.index];
    if (row.error) return work_.failed.add(path, *row.error);
    ordered_json json = image_json(path);
    if (work_.task != PredictTask::kClassify) {
      json[work_.task == PredictTask::kEmbed ? "embedding" : "logits"] =
          std::vector<float>(row.values.begin(), row.values.end());
      console_.print_json(json);
      return console_.print(shown(path) + "\t" + numbers_text(row.values) + "\n");
    }
    const std::vector<TopClass> top =
        top_classes(row.values, predictor_->labels(), options_.integer("top-k"));
    json["top"] = top_classes_json(top);
    console_.print_json(json);
    console_.print(console_.bold(shown(path)) + "\n" + top_classes_text(top, 2));
  }

  PredictWork& work_;
  const Options& options_;
  const InferenceRank& rank_;
  Console& console_;
  RowExchange exchange_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<ImageStream> stream_;
  size_t not_turned_ = 0;
  double start_seconds_ = 0;
};

void run_predict(const Options& options, Console& console) {
  on_ranks(options, console, [&](CommandRanks& ranks) {
    VT_REQUIRE(!options.flag("embed") || !options.flag("logits"), ErrorKind::kUsage,
               "--embed gives features and --logits what the head makes of them: one or the other");
    PredictWork work(options, ranks);
    ranks.run(work.engine, [&](InferenceRank& rank, Console& own) { PredictRank(work, rank, own).run(); });
    work.failed.throw_if_any();
    say_checked(options, work.nodes, ranks.console());
  });
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
       .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}}},
      run_predict};
}

}  // namespace vitrail::cli
