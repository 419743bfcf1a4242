
#include "api/classify.h"
#include "api/explain_files.h"
#include "api/predictor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/stop.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "data/image_list.h"
#include "io/checkpoint/durable.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;

class Explainer {
 public:
  Explainer(const Options& options, Console& console)
      : console_(console), method_(options.text("method")), upright_(options.flag("exif")) {
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    card_ = model->card();
    request_ = attention_request(method_, options.given("layer") ? options.integer("layer") : -1,
                                 card_.config, "--layer");
    VT_REQUIRE(request_.one_block() || !options.given("layer"), ErrorKind::kUsage,
               "--method rollout goes through all blocks: it takes no --layer");
    predictor_ = std::make_unique<Predictor>(*model, options_for(request_, read_engine_options(options)),
                                             std::vector{tasks_of(card_).front()});
    console.detail("running on " + device_text(engine().plan()));
  }

  const Engine& engine() const { return predictor_->engine(); }
  size_t not_turned() const { return not_turned_; }

  void explain(const std::string& path, const std::string& folder) {
    std::string note;
    const Image image = load_listed_image(path, upright_, note);
    if (!note.empty()) console_.detail(note), ++not_turned_;
    const Explanation seen = with_context(path, [&] {
      Explanation given = predictor_->explain(image, request_);
      require_finite(given.logits, "logits");
      return given;
    });
    report(path, seen, write_maps(image, card_, seen.maps, folder), folder);
  }

 private:
  void report(const std::string& path, const Explanation& seen, const std::vector<std::string>& files,
              const std::string& folder) {
    const std::vector<NamedMap>& maps = seen.maps;
    ordered_json json = image_json(path);
    json["model"] = card_.path;
    if (request_.one_block()) json["layer"] = request_.layer;
    console_.print(console_.bold(shown(path)) + "\n");
    if (card_.config.classes > 0) {
      const std::vector<TopClass> top = top_classes(seen.scores, predictor_->labels(), 3);
      json["top"] = top_classes_json(top);
      console_.print(top_classes_text(top, 2));
    }
    json["maps"] = ordered_json::array();
    for (size_t i = 0; i < maps.size(); ++i)
      json["maps"].push_back({{"name", maps[i].name}, {"file", files[i]}, {"spread", evenness(maps[i].map)}});
    json["sheet"] = files.back();
    console_.print("  " + maps_text(request_, maps.size()) + ": " + shown(files.back()) + "\n");
    console_.print_json(json);
    json["settings"] = explain_settings(card_, request_, method_, device_text(engine().plan()));
    write_file(folder + "/explain.json", json_text(json, 2) + "\n");
  }

  Console& console_;
  std::string method_;
  bool upright_;
  size_t not_turned_ = 0;
  ModelCard card_;
  AttentionRequest request_;
  std::unique_ptr<Predictor> predictor_;
};

void run_explain(const Options& options, Console& console) {
  const std::vector<std::string> paths = given_images(options);
  require_no_file(options.text("out"));
  std::vector<std::string> notes;
  const std::vector<std::string> folders = output_folders(paths, options.text("out"), notes);
  for (const std::string& note : notes) console.say(note);
  Explainer explainer(options, console);
  FailedImages failed(console, paths.size());
  const SignalGuard stop;
  Progress progress(console, "explain", "images", static_cast<int64_t>(paths.size()));
  for (size_t i = 0; i < paths.size(); ++i) {
    stop.check(i, paths.size());
    try {
      explainer.explain(paths[i], folders[i]);
    } catch (const Error& error) {
      failed.add(paths[i], error);
    }
    console.flush();
    progress.advance(1);
  }
  progress.finish();
  say_not_turned(explainer.not_turned(), console);
  failed.throw_if_any();
  say_checked(options, explainer.engine(), console);
}
}  // namespace

Command explain_command() {
  std::vector<OptionSpec> engine = engine_options(1);
  std::erase_if(engine, [](const OptionSpec& spec) { return spec.name == "batch"; });
  const std::vector<OptionSpec> own = {
      {.name = "out",
       .help = "folder for the overlays; several images get one each below it",
       .metavar = "DIR",
       .letter = 'o',
       .fallback = "explain-out"},
      {.name = "method",
       .help = "which maps to draw",
       .metavar = "NAME",
       .fallback = "all",
       .choices = {"all", "heads", "mean", "rollout"}},
      {.name = "layer",
       .help = "block whose heads are shown, from 0; the last one unless given",
       .kind = ValueKind::kInteger,
       .metavar = "N",
       .least = 0},
      exif_option()};
  return {{.name = "explain",
           .summary = "where the model looks: attention per head, their mean, rollout, as overlays",
           .examples = {{"explain cat.jpg --out cat", "a sheet and one PNG a map in the folder cat"},
                        {"explain -m vit_folder cat.jpg --method rollout", "through all layers at once"},
                        {"explain cat.jpg --layer 3 --method heads", "the heads of an early block"},
                        {"explain photos/ --out seen", "every image of a folder, a folder each"}},
           .options = model_options() + own + engine,
           .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}}},
          run_explain};
}

}  // namespace vitrail::cli
