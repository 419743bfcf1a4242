#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "cli/overlay.h"
#include "data/encode.h"
#include "data/preprocess.h"
#include "io/checkpoint/durable.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {

constexpr int64_t kLabelScale = 2, kLetterWidth = 6 * kLabelScale;

// What the label font can show, cut to the tile's width.
std::string tile_label(const Dataset& data, int64_t index, int64_t side) {
  std::string text;
  for (const int32_t label : data.labels(index))
    text += (text.empty() ? "" : " ") + data.classes()[static_cast<size_t>(label)];
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text.substr(0, static_cast<size_t>(side / kLetterWidth));
}

Image tile_of(const Image& picture, int64_t side) {
  PreprocessConfig config;
  config.height = config.width = config.resize = side;
  Image crop = crop_for_display(picture, config);
  if (crop.channels == 3) return crop;
  Image rgb = Image::blank(side, side, 3);
  for (size_t i = 0; i < rgb.pixels.size(); ++i) rgb.pixels[i] = crop.pixels[i / 3];
  return rgb;
}

// `count` samples drawn by the seed, then sorted by class: the same for the same seed.
std::vector<int64_t> choose(const Dataset& data, int64_t count, uint64_t seed, const std::string& only) {
  int32_t wanted = -1;
  if (!only.empty()) {
    const auto& classes = data.classes();
    const auto found = std::find(classes.begin(), classes.end(), only);
    if (found == classes.end()) {
      const std::string near = nearest_name(only, classes);
      throw Error(
          ErrorKind::kUsage, strf("the data has no class %s", quoted(only).c_str()),
          near.empty() ? "vitrail data stats lists them" : strf("did you mean %s?", quoted(near).c_str()));
    }
    wanted = static_cast<int32_t>(found - classes.begin());
  }
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto labels = data.labels(i);
    if (wanted >= 0 && std::find(labels.begin(), labels.end(), wanted) == labels.end()) continue;
    drawn.emplace_back(counter_hash(counter_hash(name_key("show"), seed), static_cast<uint64_t>(i)), i);
  }
  const auto kept = static_cast<std::ptrdiff_t>(std::min(static_cast<size_t>(count), drawn.size()));
  std::partial_sort(drawn.begin(), drawn.begin() + kept, drawn.end());
  std::vector<int64_t> indices;
  for (std::ptrdiff_t i = 0; i < kept; ++i) indices.push_back(drawn[static_cast<size_t>(i)].second);
  const auto first_label = [&](int64_t i) { return data.labels(i).empty() ? INT32_MAX : data.labels(i)[0]; };
  std::sort(indices.begin(), indices.end(), [&](int64_t a, int64_t b) {
    return std::pair(first_label(a), a) < std::pair(first_label(b), b);
  });
  return indices;
}

// Each picture as a file of its own, "label-sample.png", as it is stored.
void write_files(const Dataset& data, const std::vector<int64_t>& chosen, const std::string& folder) {
  make_folders(folder);
  for (const int64_t index : chosen) {
    std::string name = data.labels(index).empty() ? "none" : data.classes()[data.labels(index)[0]];
    name += "-" + data.sample_name(index);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    write_png(folder + "/" + name + ".png", data.load(index, 0));
  }
}

void run_show(const Options& options, Console& console) {
  const std::string& out = options.text("out");
  AtomicFile sheet(out);  // before the work: one that cannot be written is known at once
  const std::unique_ptr<Dataset> data = open_chosen_data(options);
  const int64_t side = options.integer("side");
  const std::vector<int64_t> chosen = choose(
      *data, options.integer("count"), static_cast<uint64_t>(options.integer("seed")), options.text("class"));
  if (options.given("files")) write_files(*data, chosen, options.text("files"));
  ThreadPool pool(data_threads(options));
  Progress progress(console, "show", "pictures", static_cast<int64_t>(chosen.size()));
  std::vector<Tile> tiles;
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  in_order<Image>(
      static_cast<int64_t>(chosen.size()), pool, progress,
      [&](int64_t i) { return tile_of(data->load(chosen[static_cast<size_t>(i)], side), side); },
      [&](int64_t i, Image& image, const std::optional<Error>& error) {
        const int64_t index = chosen[static_cast<size_t>(i)];
        const std::string name = data->sample_name(index);
        if (error) return console.say("warning: " + shown(name) + ": " + problem_text(*error, name));
        samples.push_back(name);
        tiles.push_back({tile_label(*data, index, side), std::move(image)});
      });
  progress.finish();
  VT_REQUIRE(!tiles.empty(), ErrorKind::kData, "none of the pictures can be shown");
  const auto across = static_cast<int64_t>(std::ceil(std::sqrt(1.5 * static_cast<double>(tiles.size()))));
  const std::vector<uint8_t> png = encode_png(contact_sheet(tiles, across, kLabelScale));
  sheet.write(std::as_bytes(std::span(png)));
  sheet.commit();
  console.print_json({{"file", out}, {"samples", samples}});
  console.print(strf("%s: %s\n", shown(out).c_str(),
                     format_count(static_cast<int64_t>(tiles.size()), "picture").c_str()));
}

}  // namespace

Command data_show_command() {
  return {{.name = "data show",
           .summary = "a sheet of pictures with their labels, as PNG",
           .examples = {{"data show folder:photos", "48 pictures into data-sheet.png"},
                        {"data show cifar10:data --class cat --count 100 -o cats.png", "one class"},
                        {"data show 'tar:train-*.tar' --seed 1 --json", R"(others; {"file", "samples"})"}},
           .options = {part_option(),
                       {.name = "out",
                        .help = "the PNG file",
                        .metavar = "FILE",
                        .letter = 'o',
                        .fallback = "data-sheet.png"},
                       {.name = "count",
                        .help = "pictures on the sheet",
                        .kind = ValueKind::kInteger,
                        .metavar = "N",
                        .fallback = "48",
                        .least = 1,
                        .most = 2000},
                       {.name = "side",
                        .help = "of a picture on the sheet, in pixels",
                        .kind = ValueKind::kInteger,
                        .metavar = "N",
                        .fallback = "128",
                        .least = 16,
                        .most = 512},
                       {.name = "class", .help = "only this class", .metavar = "NAME"},
                       {.name = "files",
                        .help = "also write each picture into this folder, as it is stored",
                        .metavar = "DIR"}},
           .positionals = {data_positional()}},
          run_show};
}

}  // namespace vitrail::cli
