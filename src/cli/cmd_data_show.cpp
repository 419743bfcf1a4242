#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "data/decode.h"
#include "data/sheet.h"
#include "data/statistics.h"
#include "io/checkpoint/durable.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {

void run_show(const Options& options, Console& console) {
  const std::string& out = options.text("out");
  AtomicFile sheet(out);  // opened first, so that a path that cannot be written fails at once
  const std::unique_ptr<Dataset> data = open_chosen_data(options);
  const int64_t side = options.integer("side");
  const std::vector<int64_t> chosen = sample_of(
      *data, options.integer("count"), static_cast<uint64_t>(options.integer("seed")), options.text("class"));
  if (options.given("files")) {
    make_folders(options.text("files"));
    write_samples(*data, chosen, options.text("files"));
  }
  ThreadPool pool(data_threads(options));
  WorkProgress progress(console, "show", static_cast<int64_t>(chosen.size()));
  std::vector<Tile> tiles;
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  in_order<Image>(
      static_cast<int64_t>(chosen.size()), pool, progress.hooks(),
      [&](int64_t i) { return square_tile(data->load(chosen[static_cast<size_t>(i)], side), side); },
      [&](int64_t i, Image& image, const std::optional<Error>& error) {
        const int64_t index = chosen[static_cast<size_t>(i)];
        const std::string name = data->sample_name(index);
        if (error) return console.say("warning: " + shown(name) + ": " + problem_text(*error, name));
        samples.push_back(name);
        tiles.push_back({tile_label(*data, index, side), std::move(image)});
      });
  progress.finish();
  VT_REQUIRE(!tiles.empty(), ErrorKind::kData, "none of the images can be shown");
  const auto across = static_cast<int64_t>(std::ceil(std::sqrt(1.5 * static_cast<double>(tiles.size()))));
  const std::vector<uint8_t> png = encode_png(contact_sheet(tiles, across, kTileLabelScale));
  sheet.write(std::as_bytes(std::span(png)));
  sheet.commit();
  console.print_json({{"file", out}, {"samples", samples}});
  console.print(strf("%s: %s\n", shown(out).c_str(),
                     format_count(static_cast<int64_t>(tiles.size()), "image").c_str()));
}

}  // namespace

Command data_show_command() {
  return {{.name = "data show",
           .summary = "a sheet of images with their labels, as PNG",
           .examples = {{"data show folder:photos", "48 images into data-sheet.png"},
                        {"data show cifar10:data --class cat --count 100 -o cats.png", "one class"},
                        {"data show 'tar:train-*.tar' --seed 1 --json", R"(others; {"file", "samples"})"}},
           .options = {part_option(),
                       {.name = "out",
                        .help = "the PNG file",
                        .metavar = "FILE",
                        .letter = 'o',
                        .fallback = "data-sheet.png"},
                       {.name = "count",
                        .help = "images on the sheet",
                        .kind = ValueKind::kInteger,
                        .metavar = "N",
                        .fallback = "48",
                        .least = 1,
                        .most = 2000},
                       {.name = "side",
                        .help = "of an image on the sheet, in pixels",
                        .kind = ValueKind::kInteger,
                        .metavar = "N",
                        .fallback = "128",
                        .least = 16,
                        .most = 512},
                       {.name = "class", .help = "only this class", .metavar = "NAME"},
                       {.name = "files",
                        .help = "also write each image into this folder, as it is stored",
                        .metavar = "DIR"}},
           .positionals = {data_positional()}},
          run_show};
}

}  // namespace vitrail::cli
