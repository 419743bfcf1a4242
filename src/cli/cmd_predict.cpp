#include "api/classify.h"
#include "api/predictor.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/timing.h"
#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "io/cards/card_text.h"
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

class PredictCommand {
 public:
  PredictCommand(const Options& options, Console& console, std::vector<std::string> paths)
      : options_(options),
        console_(console),
        paths_(std::move(paths)),
        task_(options.flag("embed")    ? PredictTask::kEmbed
              : options.flag("logits") ? PredictTask::kLogits
                                       : PredictTask::kClassify),
        failed_(console, paths_.size()) {
    VT_REQUIRE(!options.flag("embed") || !options.flag("logits"), ErrorKind::kUsage,
               "--embed gives features and --logits what the head makes of them: one or the other");
    const auto start = Clock::now();
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    const ModelCard& card = model->card();
    if (card.config.classes == 0 && task_ != PredictTask::kEmbed)
      throw Error(ErrorKind::kData, "this model has no classes", "--embed gives its features");
    console.detail("images: " + preprocess_text(card.preprocess));
    EngineOptions engine = read_engine_options(options);
    engine.batch = batch_for(options, std::ssize(paths_));
    engine.cache_folders = cache_places(options, card.path);
    StreamSettings images = stream_settings(card, engine, options.flag("exif"));
    images.threads_option = "--threads ";
    engine.beside = ImageStream::memory(paths_, images);
    // The first images are decoded while the parameters are read.
    engine.when_it_fits = [&] { stream_ = std::make_unique<ImageStream>(paths_, images); };
    predictor_ = std::make_unique<Predictor>(*model, engine, std::vector{task_});
    if (!predictor_->engine().cache_note().empty()) console.detail(predictor_->engine().cache_note());
    console.detail("running on " + device_text(predictor_->engine().plan()));
    start_seconds_ = seconds_since(start);
  }

  void run() {
    const SignalGuard stop;
    Progress progress(console_, "predict", "images", std::ssize(paths_));
    std::vector<float> rows;  // of the batch being shown
    for (size_t done = 0; !stream_->done();) {
      stop.check(done, paths_.size());
      const ImageBatch batch = stream_->next();
      for (const std::string& note : batch.notes) console_.detail(note);
      not_turned_ += batch.notes.size();
      for (const ImageRow& row : predictor_->run(task_, batch, paths_, Remainder::kPadded, rows)) show(row);
      console_.flush();
      done += batch.count;
      progress.advance(static_cast<int64_t>(batch.count));
    }
    progress.finish();
    say_times(progress.seconds());
    say_not_turned(not_turned_, console_);
    failed_.throw_if_any();
    say_checked(options_, predictor_->engine(), console_);
  }

 private:
  // Prints how long the model took to be ready, to run and to wait for images, and the decoding time of all
  // threads together.
  void say_times(double total) {
    const bool asked = options_.flag("timing");
    const double rate = total > 0 ? static_cast<double>(paths_.size()) / total : 0;
    const double compute = predictor_->compute_seconds(), wait = stream_->wait_seconds(),
                 decode = stream_->decode_seconds();
    if (asked && console_.json())
      return console_.say(json_text(ordered_json{{"images", paths_.size()},
                                                 {"batch", predictor_->batch()},
                                                 {"threads", predictor_->engine().plan().device.threads},
                                                 {"img_per_s", rate},
                                                 {"seconds", total},
                                                 {"start_seconds", start_seconds_},
                                                 {"compute_seconds", compute},
                                                 {"wait_seconds", wait},
                                                 {"decode_seconds", decode}}));
    const std::string text = strf(
        "%s in %s, %s images/s, after %s to load the model: computing %s, waiting for images "
        "%s; decoding beside it %s of processor time",
        format_count(std::ssize(paths_), "image").c_str(), format_seconds(total).c_str(),
        format_si(rate).c_str(), format_seconds(start_seconds_).c_str(), format_seconds(compute).c_str(),
        format_seconds(wait).c_str(), format_seconds(decode).c_str());
    if (asked)
      console_.say(text);
    else
      console_.detail(text);
  }

  // Shows rows in the order of the list; images that failed have a row, too.
  void show(const ImageRow& row) {
    const std::string& path = paths_[row.index];
    if (row.error) return failed_.add(path, *row.error);
    ordered_json json = image_json(path);
    if (task_ != PredictTask::kClassify) {
      json[task_ == PredictTask::kEmbed ? "embedding" : "logits"] =
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

  const Options& options_;
  Console& console_;
  std::vector<std::string> paths_;
  PredictTask task_;
  FailedImages failed_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<ImageStream> stream_;
  size_t not_turned_ = 0;
  double start_seconds_ = 0;
};

void run_predict(const Options& options, Console& console) {
  PredictCommand(options, console, given_images(options)).run();
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
                    {"predict photos/ --dtype int8",
                     "smaller weights in memory; eval --against f32 tells what it costs"},
                    {"predict --embed cat.jpg dog.jpg", "features for search and clustering"},
                    {"predict --logits --json cat.jpg", "what the head gives, class by class"},
                    {"predict @list.txt", "paths from a file, one a line"},
                    {"predict - < list.txt", "paths from stdin"}},
       .options = model_options() + own + engine_options(8),
       .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}}},
      run_predict};
}

}  // namespace vitrail::cli
