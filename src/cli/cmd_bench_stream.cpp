#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "data/image_list.h"
#include "measure/stream_bench.h"

namespace vitrail::cli {

namespace {

void run_bench_stream(const Options& options, Console& console) {
  std::vector<std::string> paths = list_images(options.positionals());
  const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
  EngineOptions settings = read_engine_options(options);
  settings.batch = batch_for(options, std::ssize(paths));
  StreamBench bench(*model, settings, std::move(paths), "--threads ");
  const int64_t rounds = options.integer("rounds");
  Progress progress(console, "bench stream", "rounds", rounds);
  for (int64_t round = 0; round < rounds; ++round) {
    bench.round();
    progress.advance(1);
  }
  progress.finish();
  console.print_json(bench.to_json());
  console.print(bench.to_text());
}

}  // namespace

Command bench_stream_command() {
  const std::vector<OptionSpec> own = {{.name = "rounds",
                                        .help = "how often each is measured, in turn",
                                        .kind = ValueKind::kInteger,
                                        .metavar = "N",
                                        .fallback = "3",
                                        .least = 1,
                                        .most = 1000}};
  return {{.name = "bench stream",
           .summary = "many images: decoding and computing overlapped, against each of them alone",
           .examples = {{"bench stream photos/", "the bundled DeiT-Tiny over a folder"},
                        {"bench stream -m vit_folder photos/ --threads 2 --json",
                         R"({"ratio_to_slower", "img_per_s", "both_seconds": [...]...})"}},
           .options = model_options() + own + engine_options(8),
           .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}},
           .infers = true},
          run_bench_stream};
}

}  // namespace vitrail::cli
