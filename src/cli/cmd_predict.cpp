#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/classify.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/pictures.h"
#include "cli/progress.h"
#include "cli/shown.h"
#include "cli/stop.h"
#include "cli/top_classes.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

std::string embedding_text(std::span<const float> values) {
  std::string text;
  for (const float value : values)
    text += strf("%s%.7g", text.empty() ? "" : " ", static_cast<double>(value));
  return text;
}

class Predictor {
 public:
  Predictor(const Options& options, Console& console, std::vector<std::string> paths)
      : options_(options),
        console_(console),
        paths_(std::move(paths)),
        embed_(options.flag("embed")),
        top_k_(options.integer("top-k")),
        failed_(console, paths_.size()) {
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    card_ = model->card();
    if (card_.config.classes == 0 && !embed_)
      throw Error(ErrorKind::kData, "this model has no classes", "--embed gives its features");
    EngineOptions engine = read_engine_options(options);
    engine.batch = std::min<int64_t>(engine.batch, static_cast<int64_t>(paths_.size()));
    engine.features = embed_;
    engine.probabilities = !embed_ && card_.scores == ScoreKind::kSoftmax;
    engine_ = std::make_unique<Engine>(*model, engine);
    console.detail("pictures: " + preprocess_text(card_.preprocess));
    console.detail("running on " + device_text(engine_->plan()));
  }

  void run() {
    ThreadPool pool(engine_->plan().device.threads);
    const auto batch = static_cast<size_t>(engine_->batch());
    const StopWatch stop;
    Progress progress(console_, "predict", "images", static_cast<int64_t>(paths_.size()));
    for (size_t first = 0; first < paths_.size(); first += batch) {
      stop.check(first, paths_.size());
      const size_t count = std::min(batch, paths_.size() - first);
      show(load_batch(paths_, first, count, card_.preprocess, engine_->picture_elems(), pool), first, count);
      progress.advance(static_cast<int64_t>(count));
    }
    progress.finish();
    console_.detail(strf("%zu pictures in %s", paths_.size(), format_seconds(progress.seconds()).c_str()));
    failed_.throw_if_any();
    say_checked(options_, *engine_, console_);
  }

 private:
  // In the order given, pictures that failed among the others.
  void show(const LoadedBatch& loaded, size_t first, size_t count) {
    for (const std::string& note : loaded.notes) console_.detail(note);
    const size_t read = loaded.indices.size();
    std::vector<float> raw, rows;
    if (read > 0) {
      engine_->run(loaded.pixels, static_cast<int64_t>(read));
      raw = engine_->output(embed_ ? "features" : "logits");
      rows = embed_ ? raw : class_scores(*engine_, card_.scores);
    }
    size_t row = 0, failure = 0;
    for (size_t index = first; index < first + count; ++index) {
      if (failure < loaded.failures.size() && loaded.failures[failure].first == index) {
        failed_.add(paths_[index], loaded.failures[failure++].second);
        continue;
      }
      const size_t width = rows.size() / read, at = width * row++;
      show_checked(paths_[index], std::span(raw).subspan(at, width), std::span(rows).subspan(at, width));
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
    if (embed_) {
      console_.print_json({{"image", path}, {"embedding", std::vector<float>(row.begin(), row.end())}});
      return console_.print(shown(path) + "\t" + embedding_text(row) + "\n");
    }
    const std::vector<TopClass> top = top_classes(row, card_.labels, top_k_);
    console_.print_json({{"image", path}, {"top", top_classes_json(top)}});
    console_.print(console_.bold(shown(path)) + "\n" + top_classes_text(top, 2));
  }

  const Options& options_;
  Console& console_;
  std::vector<std::string> paths_;
  bool embed_;
  int64_t top_k_;
  ModelCard card_;
  std::unique_ptr<Engine> engine_;
  FailedPictures failed_;
};

void run_predict(const Options& options, Console& console) {
  Predictor(options, console, given_pictures(options)).run();
}
}  // namespace

Command predict_command() {
  const std::vector<OptionSpec> own = {{.name = "top-k",
                                        .help = "classes to show",
                                        .kind = ValueKind::kInteger,
                                        .metavar = "K",
                                        .letter = 'k',
                                        .fallback = "5",
                                        .least = 1,
                                        .most = 1 << 22},
                                       {.name = "embed",
                                        .help = "the pooled features before the head instead of classes",
                                        .kind = ValueKind::kFlag}};
  return {{.name = "predict",
           .summary = "what is on a picture: the likeliest classes with probabilities",
           .examples = {{"predict cat.jpg", "with the bundled DeiT-Tiny, ImageNet's 1000 classes"},
                        {"predict -m vit_folder photos/ -k 1",
                         "every picture below a folder, the best class only"},
                        {"predict -m model.safetensors --arch vit_base_patch16_224 cat.jpg",
                         "a bare weight file, told what it is"},
                        {"predict photos/ --json | head", "one JSON line a picture"},
                        {"predict --embed cat.jpg dog.jpg", "features for search and clustering"},
                        {"predict @list.txt", "paths from a file, one a line"},
                        {"predict - < list.txt", "paths from stdin"}},
           .options = model_options() + own + engine_options(8),
           .positionals = {{"IMAGE...", kPicturesHelp, 1, SIZE_MAX}}},
          run_predict};
}

}  // namespace vitrail::cli
