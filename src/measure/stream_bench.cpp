#include "measure/stream_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/predictor.h"
#include "base/text.h"
#include "base/timing.h"
#include "data/image_list.h"
#include "plan/devices.h"
#include "telemetry/format.h"

namespace vitrail {

namespace {

double median(const std::vector<double>& values) {
  return spread_of(values).median;
}

StreamSettings settings_for(const ModelCard& card, const EngineOptions& options, const std::string& threads) {
  StreamSettings settings = stream_settings(card, options, false);
  settings.threads_option = threads;
  return settings;
}

EngineOptions beside_images(EngineOptions options, const HeldBeside& images) {
  options.beside = images;
  return options;
}

}  // namespace

StreamBench::StreamBench(const OpenedModel& model, EngineOptions options, std::vector<std::string> paths,
                         const std::string& threads_option)
    : paths_(std::move(paths)),
      stream_(settings_for(model.card(), options, threads_option)),
      options_(beside_images(std::move(options), ImageStream::memory(paths_, stream_))),
      engine_(model, options_) {}

void StreamBench::round() {
  decode_.push_back(seconds_of(true, false));
  compute_.push_back(seconds_of(false, true));
  both_.push_back(seconds_of(true, true));
}

double StreamBench::seconds_of(bool decoding, bool computing) {
  const auto start = Clock::now();
  pass(decoding, computing);
  return seconds_since(start);
}

// A pass without decoding computes the last decoded batch again.
void StreamBench::pass(bool decoding, bool computing) {
  std::optional<ImageStream> stream;
  if (decoding) stream.emplace(paths_, stream_);
  for (size_t done = 0; done < paths_.size();) {
    const size_t count = std::min(static_cast<size_t>(stream_.batch), paths_.size() - done);
    if (stream) {
      const ImageBatch batch = stream->next();
      if (!batch.failures.empty()) {
        const auto& [index, error] = batch.failures.front();
        throw with_list_hint(paths_[index], error);
      }
      pixels_.resize(std::max(pixels_.size(), batch.pixels.size()));
      std::ranges::copy(batch.pixels, pixels_.begin());
    }
    if (computing)
      engine_.run(std::span(pixels_).first(count * engine_.image_elems()), static_cast<int64_t>(count));
    done += count;
  }
}

nlohmann::ordered_json StreamBench::to_json() const {
  const double decode = median(decode_), compute = median(compute_), both = median(both_);
  return {{"images", paths_.size()},
          {"batch", engine_.batch()},
          {"device", device_text(engine_.plan())},
          {"decode_seconds", decode_},
          {"compute_seconds", compute_},
          {"both_seconds", both_},
          {"img_per_s", static_cast<double>(paths_.size()) / both},
          {"ratio_to_slower", both / std::max(decode, compute)},
          {"ratio_to_sum", both / (decode + compute)}};
}

std::string StreamBench::to_text() const {
  const double decode = median(decode_), compute = median(compute_), both = median(both_);
  const auto line = [&](const char* name, double seconds) {
    return strf("%-17s %s, %s images/s\n", name, format_seconds(seconds).c_str(),
                format_si(static_cast<double>(paths_.size()) / seconds).c_str());
  };
  return strf("%-17s %zu, batch %lld, on %s; medians of %zu\n", "images", paths_.size(),
              static_cast<long long>(engine_.batch()), device_text(engine_.plan()).c_str(), both_.size()) +
         line("decoding alone", decode) + line("computing alone", compute) + line("both, overlapped", both) +
         strf("%-17s %.2f of the slower alone, %.2f of one after the other\n", "",
              both / std::max(decode, compute), both / (decode + compute));
}

}  // namespace vitrail
