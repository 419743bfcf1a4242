
#include "api/classify.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/cache_places.h"
#include "cli/commands.h"
#include "cli/model_choice.h"
#include "cli/picture_stream.h"
#include "cli/pictures.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/top_classes.h"
#include "io/cards/card_text.h"
#include "io/cards/imagenet_names.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string numbers_text(std::span<const float> values) {
  std::string text;
  for (const float value : values)
    text += strf("%s%.7g", text.empty() ? "" : " ", static_cast<double>(value));
  return text;
}

// Where the time of a run went, in seconds.
struct PredictTimes {
  double start = 0;    // until the model was ready
  double total = 0;    // from then on
  double compute = 0;  // the model's runs
  double wait = 0;     // of computing for pictures
  double decode = 0;   // all decoding threads together, beside the rest
};

class Predictor {
 public:
  Predictor(const Options& options, Console& console, std::vector<std::string> paths)
      : options_(options),
        console_(console),
        paths_(std::move(paths)),
        embed_(options.flag("embed")),
        numbers_(embed_ || options.flag("logits")),
        top_k_(options.integer("top-k")),
        failed_(console, paths_.size()) {
    VT_REQUIRE(!embed_ || !options.flag("logits"), ErrorKind::kUsage,
               "--embed gives features and --logits what the head makes of them: one or the other");
    const auto start = Clock::now();
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    card_ = model->card();
    labels_ = display_labels(card_);
    if (card_.config.classes == 0 && !embed_)
      throw Error(ErrorKind::kData, "this model has no classes", "--embed gives its features");
    console.detail("pictures: " + preprocess_text(card_.preprocess));
    EngineOptions engine = read_engine_options(options);
    engine.batch = batch_for(options, std::ssize(paths_));
    engine.features = embed_;
    engine.probabilities = !numbers_ && card_.scores == ScoreKind::kSoftmax;
    engine.cache_folders = cache_places(options, card_.path);
    const StreamSettings pictures{card_.preprocess, card_.config.channels, engine.batch,
                                  processor_threads(engine.threads, engine.isa), options.flag("exif")};
    engine.beside = PictureStream::memory(paths_, pictures);
    // The first images are decoded while the parameters are read.
    engine.when_it_fits = [&] { stream_ = std::make_unique<PictureStream>(paths_, pictures); };
    engine_ = std::make_unique<Engine>(*model, engine);
    if (!engine_->cache_note().empty()) console.detail(engine_->cache_note());
    console.detail("running on " + device_text(engine_->plan()));
    times_.start = seconds_since(start);
  }

  void run() {
    const SignalGuard stop;
    Progress progress(console_, "predict", "images", std::ssize(paths_));
    while (!stream_->done()) {
      stop.check(done_, paths_.size());
      const PictureBatch batch = stream_->next();
      show(batch);
      done_ += batch.count;
      progress.advance(static_cast<int64_t>(batch.count));
    }
    progress.finish();
    times_.total = progress.seconds();
    times_.wait = stream_->wait_seconds();
    times_.decode = stream_->decode_seconds();
    say_times();
    say_not_turned(not_turned_, console_);
    failed_.throw_if_any();
    say_checked(options_, *engine_, console_);
  }

 private:
  void say_times() {
    const bool asked = options_.flag("timing");
    const double rate = times_.total > 0 ? static_cast<double>(paths_.size()) / times_.total : 0;
    if (asked && console_.json())
      return console_.say(json_text(ordered_json{{"images", paths_.size()},
                                                 {"batch", engine_->batch()},
                                                 {"threads", engine_->plan().device.threads},
                                                 {"img_per_s", rate},
                                                 {"seconds", times_.total},
                                                 {"start_seconds", times_.start},
                                                 {"compute_seconds", times_.compute},
                                                 {"wait_seconds", times_.wait},
                                                 {"decode_seconds", times_.decode}}));
    const std::string text = strf(
        "%s in %s, %s images/s, after %s to load the model: computing %s, waiting for pictures "
        "%s; decoding beside it %s of processor time",
        format_count(std::ssize(paths_), "picture").c_str(), format_seconds(times_.total).c_str(),
        format_si(rate).c_str(), format_seconds(times_.start).c_str(), format_seconds(times_.compute).c_str(),
        format_seconds(times_.wait).c_str(), format_seconds(times_.decode).c_str());
    asked ? console_.say(text) : console_.detail(text);
  }

  void compute(const PictureBatch& batch) {
    const auto start = Clock::now();
    engine_->run(batch.pixels, static_cast<int64_t>(batch.count));
    times_.compute += seconds_since(start);
    raw_ = engine_->output(embed_ ? "features" : "logits");
    rows_ = numbers_ ? raw_ : class_scores(*engine_, card_.scores);
  }

  // In the order given, pictures that failed among the others.
  void show(const PictureBatch& batch) {
    for (const std::string& note : batch.notes) console_.detail(note);
    not_turned_ += batch.notes.size();
    if (batch.readable() > 0) compute(batch);
    const size_t width = rows_.size() / batch.count;
    auto failure = batch.failures.begin();
    for (size_t i = 0; i < batch.count; ++i) {
      const std::string& path = paths_[batch.first + i];
      if (failure != batch.failures.end() && failure->first == batch.first + i)
        failed_.add(path, (failure++)->second);
      else
        show_checked(path, std::span(raw_).subspan(i * width, width),
                     std::span(rows_).subspan(i * width, width));
    }
    console_.flush();
  }

  void show_checked(const std::string& path, std::span<const float> raw, std::span<const float> row) {
    try {
      with_context(shown(path), [&] { require_finite(raw, embed_ ? "features" : "logits"); });
    } catch (const Error& error) {
      return failed_.add(path, error);
    }
    show_one(path, row);
  }

  void show_one(const std::string& path, std::span<const float> row) {
    if (numbers_) {
      console_.print_json(
          {{"image", path}, {embed_ ? "embedding" : "logits", std::vector<float>(row.begin(), row.end())}});
      return console_.print(shown(path) + "\t" + numbers_text(row) + "\n");
    }
    const std::vector<TopClass> top = top_classes(row, labels_, top_k_);
    console_.print_json({{"image", path}, {"top", top_classes_json(top)}});
    console_.print(console_.bold(shown(path)) + "\n" + top_classes_text(top, 2));
  }

  const Options& options_;
  Console& console_;
  std::vector<std::string> paths_;
  bool embed_, numbers_;  // features; features or logits, all of them
  int64_t top_k_;
  FailedPictures failed_;
  ModelCard card_;
  std::vector<std::string> labels_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PictureStream> stream_;
  std::vector<float> raw_, rows_;  // of the batch being shown
  size_t done_ = 0, not_turned_ = 0;
  PredictTimes times_;
};

void run_predict(const Options& options, Console& console) {
  Predictor(options, console, given_pictures(options)).run();
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
  return {{.name = "predict",
           .summary = "what is on a picture: the likeliest classes with probabilities",
           .examples = {{"predict cat.jpg", "with the bundled DeiT-Tiny, ImageNet's 1000 classes"},
                        {"predict -m vit_folder photos/ -k 1",
                         "every picture below a folder, the best class only"},
                        {"predict -m model.safetensors --arch vit_base_patch16_224 cat.jpg",
                         "a bare weight file, told what it is"},
                        {"predict photos/ --json | head", "one JSON line a picture"},
                        {"predict photos/ --batch 64 --device cuda --dtype bf16", "on a GPU"},
                        {"predict photos/ --timing",
                         "and where the time went: loading, decoding, computing, waiting"},
                        {"predict photos/ --dtype int8",
                         "smaller weights in memory; eval --against f32 tells what it costs"},
                        {"predict --embed cat.jpg dog.jpg", "features for search and clustering"},
                        {"predict --logits --json cat.jpg", "what the head gives, class by class"},
                        {"predict @list.txt", "paths from a file, one a line"},
                        {"predict - < list.txt", "paths from stdin"}},
           .options = model_options() + own + engine_options(8),
           .positionals = {{"IMAGE...", kPicturesHelp, 1, SIZE_MAX}}},
          run_predict};
}

}  // namespace vitrail::cli
