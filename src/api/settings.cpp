#include "api/settings.h"

#include <algorithm>

#include "api/precision.h"
#include "backend/registry.h"
#include "base/json.h"
#include "base/plugin_library.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/values.h"
#include "io/find_model.h"
#include "plan/devices.h"
#include "plan/largest_batch.h"
#include "train/config_io.h"
#include "train/device_transport.h"
#include "vitrail/version.h"

namespace vitrail {

namespace {

void require_between(const char* name, int64_t value, int64_t least, int64_t most) {
  VT_REQUIRE(value >= least && value <= most, ErrorKind::kUsage, "%s is %lld: expected %lld to %lld", name,
             static_cast<long long>(value), static_cast<long long>(least), static_cast<long long>(most));
}

constexpr int64_t kMaxRanks = 256, kMaxSide = 65536;

}  // namespace

EngineOptions engine_options(const ModelOptions& options) {
  const std::vector<std::string>& types = model_types();
  if (std::find(types.begin(), types.end(), options.dtype) == types.end())
    throw Error(
        ErrorKind::kUsage,
        strf("dtype expects one of %s, not %s", join(types, ", ").c_str(), quoted(options.dtype).c_str()),
        did_you_mean(options.dtype, types, "dtype ", "dtype f32"));
  require_threads(options.threads);
  require_between("batch", options.batch, 1, kLargestBatch);
  const DeviceName device = parse_device_name(options.device, "device");
  EngineOptions engine;
  engine.backend = device.entry->name;
  engine.ordinal = device.ordinal;
  engine.threads = options.threads;
  engine.batch = options.batch;
  set_precision(options.dtype, options.device, engine);
  return engine;
}

OpenOptions open_options(const ModelOptions& options) {
  require_between("image_size", options.image_size, 0, kMaxSide);
  require_between("image_height", options.image_height, 0, kMaxSide);
  require_between("image_width", options.image_width, 0, kMaxSide);
  VT_REQUIRE(options.image_size == 0 || (options.image_height == 0 && options.image_width == 0),
             ErrorKind::kUsage,
             "image_size is for square images: leave it or image_height and image_width 0");
  VT_REQUIRE((options.image_height == 0) == (options.image_width == 0), ErrorKind::kUsage,
             "image_height is %lld and image_width %lld: expected both sides, or neither",
             static_cast<long long>(options.image_height), static_cast<long long>(options.image_width));
  return {.arch = options.arch,
          .image_height = options.image_size > 0 ? options.image_size : options.image_height,
          .image_width = options.image_size > 0 ? options.image_size : options.image_width};
}

LocalRanks local_ranks(const TrainOptions& options, const TrainConfig& whole) {
  const std::string backend = parse_device_name(options.device, "device").entry->name;
  return {.worlds = open_world({options.ranks, {}}).ranks,
          .mesh = whole.mesh,
          .device =
              [&options, backend](int local) {
                return device_of_rank(backend, options.device, options.threads, "",
                                      {.local = local,
                                       .sharing = options.ranks,
                                       .shares_gpus = ranks_share_gpus(options.variables)});
              },
          .seed = static_cast<uint64_t>(whole.train.seed),
          .sharing = options.ranks,
          .variables = options.variables};
}

void require_threads(int threads) {
  require_between("threads", threads, 0, kMaxThreads);
}

void require_ranks(int ranks) {
  require_between("ranks", ranks, 1, kMaxRanks);
}

TrainConfig training_config(const std::string& config, std::vector<std::string>* notes) {
  const size_t start = config.find_first_not_of(" \t\r\n");
  VT_REQUIRE(start != std::string::npos, ErrorKind::kUsage,
             "expected a training config as a path or as JSON text, found nothing");
  const FindModel find = [](const std::string& name) { return find_model(name); };
  if (config[start] != '{') return read_train_config(config, find, notes);
  // Text is read as a file is: with comments, and what is no JSON is a mistake in the config.
  const JsonLimits limits{.max_bytes = 1 << 20, .comments = true, .kind = ErrorKind::kConfig};
  return train_config_from_json(parse_json(config, "the config", limits), "the config", find, notes);
}

std::filesystem::path installed_program() {
  const std::filesystem::path library = file_of_code(reinterpret_cast<const void*>(&version));
  const std::filesystem::path folder = library.parent_path();
  return folder.filename() == "lib" ? folder.parent_path() / "bin" / "vitrail" : library;
}

std::string find_model(const std::string& path_or_name) {
  return find_model(path_or_name, model_places_for("", installed_program()));
}

}  // namespace vitrail
