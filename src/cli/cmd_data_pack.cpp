#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "data/datasets/packed.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {

class Packer {
 public:
  Packer(const Options& options, Console& console)
      : options_(options), console_(console), pool_(data_threads(options)) {}

  void run() {
    const std::string& spec = options_.positional(0);
    const auto train = open_dataset(spec, Part::kTrain), val = open_part_if_any(spec, Part::kVal);
    VT_REQUIRE(!val || val->classes() == train->classes(), ErrorKind::kData,
               "%s: its training and validation parts have other classes", spec.c_str());
    PackWriter writer(options_.text("out"), train->classes(), train->multi_label());
    add(*train, Part::kTrain, writer);
    if (val) add(*val, Part::kVal, writer);
    writer.finish();
    console_.print_json({{"file", options_.text("out")},
                         {"train", train->size()},
                         {"val", val ? val->size() : 0},
                         {"left_out", left_out_},
                         {"bytes", writer.bytes()}});
    const int64_t packed = train->size() + (val ? val->size() : 0) - left_out_;
    console_.print(strf("%s: %s, %s; use it as packed:%s\n", shown(options_.text("out")).c_str(),
                        format_count(packed, "image").c_str(), format_bytes(writer.bytes()).c_str(),
                        shown(options_.text("out")).c_str()));
  }

 private:
  void add(const Dataset& data, Part part, PackWriter& writer) {
    WorkProgress progress(console_, "pack", data.size());
    const int64_t side = options_.integer("side");
    in_order<PackedImage>(
        data.size(), pool_, progress.hooks(), [&](int64_t index) { return packed(data, index, side); },
        [&](int64_t index, PackedImage& image, const std::optional<Error>& error) {
          const std::string name = data.sample_name(index);
          if (!error) return writer.add(name, data.labels(index), part, image);
          if (!options_.flag("skip-bad"))
            throw Error(ErrorKind::kData, shown(name) + ": " + problem_text(*error, name),
                        "vitrail data check lists all that are broken; --skip-bad leaves them out");
          ++left_out_;
          console_.say("left out " + shown(name) + ": " + problem_text(*error, name));
        });
  }

  const Options& options_;
  Console& console_;
  ThreadPool pool_;
  int64_t left_out_ = 0;
};

void run_pack(const Options& options, Console& console) {
  Packer(options, console).run();
}

}  // namespace

Command data_pack_command() {
  return {
      {.name = "data pack",
       .summary = "a whole dataset in one checked file that opens at once",
       .examples = {{"data pack folder:photos -o photos.vtpack", "image files as they are"},
                    {"data pack folder:photos -o small.vtpack --side 256",
                     "pixels, 256 x 256: nothing to decode later"},
                    {"data pack idx:mnist -o mnist.vtpack --json",
                     R"({"file", "train", "val", "left_out", "bytes"})"}},
       .options = {{.name = "out",
                    .help = "the file to write",
                    .metavar = "FILE",
                    .letter = 'o',
                    .fallback = "data.vtpack"},
                   {.name = "side",
                    .help = "shrink the shorter side to N, crop to a square and keep pixels; 0: as it is",
                    .kind = ValueKind::kInteger,
                    .metavar = "N",
                    .fallback = "0",
                    .least = 0,
                    .most = 4096},
                   {.name = "skip-bad", .help = "leave out what cannot be read", .kind = ValueKind::kFlag}},
       .positionals = {data_positional()}},
      run_pack};
}

}  // namespace vitrail::cli
