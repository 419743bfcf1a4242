#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/attention_maps.h"
#include "cli/commands.h"
#include "cli/model_card.h"
#include "cli/model_choice.h"
#include "cli/overlay.h"
#include "cli/pictures.h"
#include "cli/progress.h"
#include "cli/top_classes.h"
#include "data/decode.h"
#include "data/encode.h"
#include "data/preprocess.h"

namespace vitrail::cli {

namespace {
using nlohmann::ordered_json;
namespace fs = std::filesystem;
constexpr int64_t kSmallestOverlay = 448;  // pixels; smaller crops are taken from the picture in larger size

// The same framing with more pixels.
PreprocessConfig enlarged(PreprocessConfig config) {
  const int64_t side = std::min(config.height, config.width);
  const int64_t scale = std::max<int64_t>(1, (kSmallestOverlay + side - 1) / side);
  config.height *= scale;
  config.width *= scale;
  config.resize *= scale;
  config.resize_longer *= scale;
  return config;
}

Image as_rgb(Image image) {
  if (image.channels == 3) return image;
  Image rgb = Image::blank(image.height, image.width, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i)
    rgb.pixels[i] = image.pixels[i / 3 * static_cast<size_t>(image.channels)];
  return rgb;
}

// Sheets a little wider than high.
int64_t tiles_per_row(size_t tiles) {
  return std::clamp<int64_t>(std::lround(std::sqrt(1.5 * static_cast<double>(tiles))), 3, 6);
}

struct NamedMap {
  std::string name;
  PatchMap map;
};

class Explainer {
 public:
  Explainer(const Options& options, Console& console) : console_(console), method_(options.text("method")) {
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    card_ = model->card();
    layer_ = options.given("layer") ? options.integer("layer") : card_.config.depth - 1;
    VT_REQUIRE(layer_ < card_.config.depth, ErrorKind::kUsage,
               "--layer is %lld, but the model has blocks 0 to %lld", static_cast<long long>(layer_),
               static_cast<long long>(card_.config.depth - 1));
    EngineOptions engine = read_engine_options(options);
    engine.batch = 1;
    engine.attention = true;
    engine.probabilities = card_.config.classes > 0;
    engine_ = std::make_unique<Engine>(*model, engine);
    console.detail("running on " + device_text(engine_->plan()));
  }

  void explain(const std::string& path, const fs::path& folder) {
    const Image picture = load_image(path);
    std::vector<float> input(engine_->picture_elems());
    preprocess(picture, card_.preprocess, input);
    engine_->run(input, 1);
    const std::vector<NamedMap> maps = make_maps();
    const std::vector<std::string> files = draw(picture, maps, folder);
    report(path, maps, files, folder);
  }

 private:
  std::vector<float> weights(int64_t block) const {
    return engine_->output("blocks." + std::to_string(block) + ".attention");
  }

  bool wants(const char* method) const { return method_ == "all" || method_ == method; }

  std::vector<NamedMap> make_maps() const {
    const VitConfig& config = card_.config;
    std::vector<NamedMap> maps;
    const std::vector<float> chosen = weights(layer_);
    if (wants("mean")) maps.push_back({"mean", mean_map(chosen, config)});
    if (wants("rollout")) {
      std::vector<std::vector<float>> layers;
      for (int64_t i = 0; i < config.depth; ++i) layers.push_back(weights(i));
      maps.push_back({"rollout", rollout_map(layers, config)});
    }
    if (wants("heads"))
      for (int64_t head = 0; head < config.heads; ++head)
        maps.push_back({strf("head-%02lld", static_cast<long long>(head)), head_map(chosen, config, head)});
    return maps;
  }

  std::vector<std::string> draw(const Image& picture, const std::vector<NamedMap>& maps,
                                const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    VT_REQUIRE(!error, ErrorKind::kWrite, "cannot create the folder %s: %s", folder.c_str(),
               error.message().c_str());
    const Image crop = as_rgb(crop_for_display(picture, enlarged(card_.preprocess)));
    std::vector<std::string> files;
    std::vector<Image> tiles = {crop};
    for (const NamedMap& one : maps) {
      tiles.push_back(
          heat_overlay(crop, stretched(one.map), card_.config.grid_height(), card_.config.grid_width()));
      files.push_back((folder / (one.name + ".png")).string());
      write_png(files.back(), tiles.back());
    }
    files.push_back((folder / "sheet.png").string());
    write_png(files.back(), contact_sheet(tiles, tiles_per_row(tiles.size())));
    return files;
  }

  void report(const std::string& path, const std::vector<NamedMap>& maps,
              const std::vector<std::string>& files, const fs::path& folder) {
    ordered_json json = {{"image", path}, {"model", card_.path}, {"layer", layer_}};
    console_.print(console_.bold(path) + "\n");
    if (engine_->has_output("probs")) {
      const std::vector<TopClass> top = top_classes(engine_->output("probs"), card_.labels, 3);
      json["top"] = top_classes_json(top);
      console_.print(top_classes_text(top, 2));
    }
    json["maps"] = ordered_json::array();
    for (size_t i = 0; i < maps.size(); ++i)
      json["maps"].push_back({{"name", maps[i].name}, {"file", files[i]}, {"spread", evenness(maps[i].map)}});
    json["sheet"] = files.back();
    console_.print(strf("  %zu overlays of block %lld and %s\n", maps.size(), static_cast<long long>(layer_),
                        files.back().c_str()));
    console_.print_json(json);
    write_file((folder / "explain.json").string(),
               json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  }

  Console& console_;
  std::string method_;
  ModelCard card_;
  int64_t layer_ = 0;
  std::unique_ptr<Engine> engine_;
};

void run_explain(const Options& options, Console& console) {
  const std::vector<std::string> paths = list_pictures(options.positionals(), "");
  Explainer explainer(options, console);
  Progress progress(console, "explain", "images", static_cast<int64_t>(paths.size()));
  const fs::path out = options.text("out");
  for (const std::string& path : paths) {
    // Several pictures get a folder each.
    explainer.explain(path, paths.size() == 1 ? out : out / fs::path(path).stem());
    console.flush();
    progress.advance(1);
  }
}
}  // namespace

Command explain_command() {
  std::vector<OptionSpec> engine = engine_options(1);
  std::erase_if(engine, [](const OptionSpec& spec) { return spec.name == "batch"; });
  const std::vector<OptionSpec> own = {
      {.name = "out",
       .help = "folder for the overlays",
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
       .least = 0}};
  return {{.name = "explain",
           .summary = "where the model looks: attention per head, their mean, rollout, as overlays",
           .examples = {{"explain cat.jpg --out cat", "a sheet and one PNG a map in the folder cat"},
                        {"explain -m vit_folder cat.jpg --method rollout", "through all layers at once"},
                        {"explain cat.jpg --layer 3 --method heads", "the heads of an early block"}},
           .options = model_options() + own + engine,
           .positionals = {{"IMAGE...", "JPEG, PNG or WebP files, or folders of them", 1, SIZE_MAX}}},
          run_explain};
}

}  // namespace vitrail::cli
