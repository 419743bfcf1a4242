#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/pictures.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/shown.h"
#include "cli/top_classes.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;
constexpr size_t kMaxListBytes = 64 << 20;

std::string embedding_text(std::span<const float> values) {
  std::string text;
  for (const float value : values) text += strf(" %.7g", static_cast<double>(value));
  return text;
}

class Predictor {
 public:
  Predictor(const Options& options, Console& console, std::vector<std::string> paths)
      : console_(console),
        paths_(std::move(paths)),
        embed_(options.flag("embed")),
        top_k_(options.integer("top-k")) {
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    card_ = model->card();
    if (card_.config.classes == 0 && !embed_)
      throw Error(ErrorKind::kData, "this model has no classes", "--embed gives its features");
    EngineOptions engine = read_engine_options(options);
    engine.batch = std::min<int64_t>(engine.batch, static_cast<int64_t>(paths_.size()));
    engine.features = embed_;
    engine.probabilities = !embed_;
    engine_ = std::make_unique<Engine>(*model, engine);
    console.detail("pictures: " + preprocess_text(card_.preprocess));
    console.detail("running on " + device_text(engine_->plan()));
  }

  void run() {
    ThreadPool pool(engine_->plan().device.threads);
    const auto batch = static_cast<size_t>(engine_->batch());
    Progress progress(console_, "predict", "images", static_cast<int64_t>(paths_.size()));
    for (size_t first = 0; first < paths_.size(); first += batch) {
      const size_t count = std::min(batch, paths_.size() - first);
      const LoadedBatch loaded =
          load_batch(paths_, first, count, card_.preprocess, engine_->picture_elems(), pool);
      for (const auto& [index, error] : loaded.failures) fail(index, error);
      if (!loaded.indices.empty()) show(loaded);
      progress.advance(static_cast<int64_t>(count));
    }
    progress.finish();
    console_.detail(strf("%zu pictures in %s", paths_.size(), format_seconds(progress.seconds()).c_str()));
    if (failed_ > 0)
      throw Error(ErrorKind::kData, strf("%zu of %zu pictures could not be read", failed_, paths_.size()));
  }

 private:
  // The only picture's error is the command's; among many it is told and the others go on.
  void fail(size_t index, const Error& error) {
    if (paths_.size() == 1) throw error;
    ++failed_;
    console_.print_json({{"image", paths_[index]}, {"error", error.message()}});
    console_.say(format_error(error, false, false));
  }

  void show(const LoadedBatch& loaded) {
    engine_->run(loaded.pixels, static_cast<int64_t>(loaded.indices.size()));
    const std::vector<float> rows = engine_->output(embed_ ? "features" : "probs");
    const size_t width = rows.size() / loaded.indices.size();
    for (size_t i = 0; i < loaded.indices.size(); ++i)
      show_one(paths_[loaded.indices[i]], std::span(rows).subspan(i * width, width));
    console_.flush();
  }

  void show_one(const std::string& path, std::span<const float> row) {
    if (embed_) {
      console_.print_json({{"image", path}, {"embedding", std::vector<float>(row.begin(), row.end())}});
      return console_.print(shown(path) + embedding_text(row) + "\n");
    }
    const std::vector<TopClass> top = top_classes(row, card_.labels, top_k_);
    console_.print_json({{"image", path}, {"top", top_classes_json(top)}});
    console_.print(console_.bold(shown(path)) + "\n" + top_classes_text(top, 2));
  }

  Console& console_;
  std::vector<std::string> paths_;
  bool embed_;
  int64_t top_k_;
  ModelCard card_;
  std::unique_ptr<Engine> engine_;
  size_t failed_ = 0;
};

void run_predict(const Options& options, Console& console) {
  const std::vector<std::string>& arguments = options.positionals();
  const bool from_stdin = std::find(arguments.begin(), arguments.end(), "-") != arguments.end();
  const std::string list = from_stdin ? read_file("/dev/stdin", kMaxListBytes) : "";
  Predictor(options, console, list_pictures(arguments, list)).run();
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
                        {"predict - < list.txt", "paths from stdin, one a line"}},
           .options = model_options() + own + engine_options(8),
           .positionals = {{"IMAGE...", "JPEG, PNG or WebP files, folders of them, or - for a list on stdin",
                            1, SIZE_MAX}}},
          run_predict};
}

}  // namespace vitrail::cli
