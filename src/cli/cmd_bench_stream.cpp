#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/image_stream.h"
#include "base/error.h"
#include "base/timing.h"
#include "cli/commands.h"
#include "cli/images.h"
#include "cli/model_choice.h"
#include "cli/progress.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {

double median(std::vector<double> values) {
  return spread_of(std::move(values)).median;
}

// Measures decoding alone, computing alone, and both overlapped, in alternation, so that a disturbance of the
// machine affects all three.
class StreamBench {
 public:
  StreamBench(const Options& options, Console& console)
      : console_(console), paths_(given_images(options)), rounds_(options.integer("rounds")) {
    const std::unique_ptr<OpenedModel> model = open_chosen(options, console);
    EngineOptions settings = read_engine_options(options);
    settings.batch = batch_for(options, std::ssize(paths_));
    stream_ = {model->card().preprocess,
               model->card().config.channels,
               settings.batch,
               processor_threads(settings.threads, settings.isa),
               false,
               "--threads "};
    settings.beside = ImageStream::memory(paths_, stream_);
    engine_ = std::make_unique<Engine>(*model, settings);
  }

  void run() {
    Progress progress(console_, "bench stream", "rounds", rounds_);
    for (int64_t round = 0; round < rounds_; ++round) {
      decode_.push_back(timed([&] { pass(true, false); }));
      compute_.push_back(timed([&] { pass(false, true); }));
      both_.push_back(timed([&] { pass(true, true); }));
      progress.advance(1);
    }
    progress.finish();
    report();
  }

 private:
  template <typename Body>
  double timed(const Body& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // A pass without decoding computes the last decoded batch again.
  void pass(bool decoding, bool computing) {
    std::optional<ImageStream> stream;
    if (decoding) stream.emplace(paths_, stream_);
    for (size_t done = 0; done < paths_.size();) {
      const size_t count = std::min(static_cast<size_t>(stream_.batch), paths_.size() - done);
      if (stream) take(stream->next());
      if (computing)
        engine_->run(std::span(pixels_).first(count * engine_->image_elems()), static_cast<int64_t>(count));
      done += count;
    }
  }

  void take(const ImageBatch& batch) {
    if (!batch.failures.empty()) throw batch.failures.front().second;
    pixels_.resize(std::max(pixels_.size(), batch.pixels.size()));
    std::copy(batch.pixels.begin(), batch.pixels.end(), pixels_.begin());
  }

  void report() {
    const double decode = median(decode_), compute = median(compute_), both = median(both_);
    const double ratio = both / std::max(decode, compute);
    const auto count = static_cast<double>(paths_.size());
    console_.print_json({{"images", paths_.size()},
                         {"batch", engine_->batch()},
                         {"device", device_text(engine_->plan())},
                         {"decode_seconds", decode_},
                         {"compute_seconds", compute_},
                         {"both_seconds", both_},
                         {"img_per_s", count / both},
                         {"ratio_to_slower", ratio},
                         {"ratio_to_sum", both / (decode + compute)}});
    const auto line = [&](const char* name, double seconds) {
      return strf("%-17s %s, %s images/s\n", name, format_seconds(seconds).c_str(),
                  format_si(count / seconds).c_str());
    };
    console_.print(strf("%-17s %zu, batch %lld, on %s; medians of %lld\n", "images", paths_.size(),
                        static_cast<long long>(engine_->batch()), device_text(engine_->plan()).c_str(),
                        static_cast<long long>(rounds_)) +
                   line("decoding alone", decode) + line("computing alone", compute) +
                   line("both, overlapped", both) +
                   strf("%-17s %.2f of the slower alone, %.2f of one after the other\n", "", ratio,
                        both / (decode + compute)));
  }

  Console& console_;
  const std::vector<std::string> paths_;
  const int64_t rounds_;
  std::unique_ptr<Engine> engine_;
  StreamSettings stream_;
  std::vector<float> pixels_;
  std::vector<double> decode_, compute_, both_;
};

void run_bench_stream(const Options& options, Console& console) {
  StreamBench(options, console).run();
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
           .positionals = {{"IMAGE...", kImagesHelp, 1, SIZE_MAX}}},
          run_bench_stream};
}

}  // namespace vitrail::cli
