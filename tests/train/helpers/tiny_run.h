// Training runs that take milliseconds: a ViT of a few thousand parameters on synthetic images, run in
// process. The output of a run is collected for comparison.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/ref/kernels.h"
#include "base/file.h"
#include "base/run_files.h"
#include "io/checkpoint/checkpoint.h"
#include "runtime/transfer.h"
#include "telemetry/metrics_file.h"
#include "telemetry/run_log.h"
#include "train/team.h"
#include "train/train_step.h"
#include "train/trainer.h"
#include "train/world.h"

namespace vitrail::testing {

// A folder that goes away with the test; in memory where possible.
class WorkFolder {
 public:
  WorkFolder() {
    const bool in_memory = ::access("/dev/shm", W_OK) == 0;
    const std::string place = in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    std::string pattern = place + "/vitrail-train-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline bool is_long() {
  return std::getenv("VITRAIL_TEST_LONG") != nullptr;
}

template <typename Set>
void set_model(TrainConfig& config, const char* name, Set&& set) {
  set(config.model.fields);
  config.model.given.insert(name);
}

inline void set_image(TrainConfig& config, int64_t side) {
  set_model(config, "image_height", [&](VitConfig& m) { m.image_height = side; });
  set_model(config, "image_width", [&](VitConfig& m) { m.image_width = side; });
}

inline void set_patch(TrainConfig& config, int64_t patch) {
  set_model(config, "patch", [&](VitConfig& m) { m.patch = patch; });
}

// 8 x 8 images of 4 classes in 4 patches, two blocks of width 16; nothing saved or evaluated but at the
// end.
inline TrainConfig tiny_config(int64_t steps) {
  TrainConfig config;
  set_image(config, 8);
  set_patch(config, 4);
  set_model(config, "width", [](VitConfig& m) { m.width = 16; });
  set_model(config, "depth", [](VitConfig& m) { m.depth = 2; });
  set_model(config, "heads", [](VitConfig& m) { m.heads = 2; });
  set_model(config, "mlp", [](VitConfig& m) { m.mlp = 32; });
  config.data.train = "synthetic:3x8x8x4x40";
  config.loader.workers = 1;
  config.augment.hflip = 0;
  config.train.batch = 8;
  config.train.steps = steps;
  config.train.eval_every = 1000000;
  config.train.log_every = 1;
  config.train.save_minutes = 0;
  config.train.save_every = 1000000;
  config.train.tensorboard = false;
  config.optim.lr = 0.003;
  return config;
}

// Every setting that draws random numbers or keeps state, at once.
inline TrainConfig full_config(int64_t steps) {
  TrainConfig config = tiny_config(steps);
  config.augment.crop = CropKind::kResized;
  config.augment.crop_scale = {0.4, 1};
  config.augment.hflip = 0.5;
  config.augment.policy = "rand-m9-mstd0.5-inc1";
  config.augment.erase = 0.25;
  config.augment.mixup = 0.8;
  config.augment.cutmix = 1;
  config.augment.mix_group = 4;
  config.train.micro_batch = 4;
  config.train.smoothing = 0.1;
  config.train.dropout = 0.1;
  config.train.drop_path = 0.2;
  config.train.eval_every = 3;
  config.optim.weight_decay = 0.05;
  config.optim.clip_norm = 1;
  config.optim.ema_decay = 0.9;
  config.schedule.warmup = 3;
  return config;
}

// A task that is learnt in a hundred steps. It has a warm-up, because Adam's first updates follow signs,
// which rounding can flip.
inline TrainConfig learnable_config(int64_t steps) {
  TrainConfig config = tiny_config(steps);
  config.data.train = "synthetic:3x8x8x4x400";
  config.train.batch = 32;
  config.train.smoothing = 0.1;
  config.train.log_every = 50;
  config.optim.clip_norm = 1;
  config.schedule.warmup = 10;
  return config;
}

// A run, with everything it reported.
struct Ran {
  TrainOutcome outcome;
  std::vector<TrainStatus> steps;
  std::vector<EvalStatus> evals;
  std::vector<RunEvent> events;
  std::vector<std::string> notes;

  std::vector<double> losses() const {
    std::vector<double> all;
    for (const TrainStatus& status : steps) all.push_back(status.loss);
    return all;
  }
  int64_t events_of(const std::string& what) const {
    return std::count_if(events.begin(), events.end(), [&](const RunEvent& e) { return e.what == what; });
  }
  bool noted(const std::string& part) const {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return note.find(part) != std::string::npos; });
  }
  bool told(const std::string& what, const std::string& part) const {
    return std::any_of(events.begin(), events.end(), [&](const RunEvent& e) {
      return e.what == what && e.text.find(part) != std::string::npos;
    });
  }
};

struct RunOptions {
  ResumeMode resume = ResumeMode::kFresh;
  int threads = 1;
  bool cuda = false;
  bool ref = false;                                         // the reference backend
  int64_t stop_after = 0;                                   // a step; 0: never
  std::function<void(const TrainStatus&)> step{};           // called after every update
  std::function<bool()> stop{};                             // asked between updates
  std::function<void(TrainStep&, int64_t made)> disturb{};  // called on every rank after an update
  int ranks = 1;                                            // threads of the test
  Variables variables{};                                    // of an environment
};

// Fills `ran` during the run, so that it is available even when the run throws.
inline void train_into(Ran& ran, const TrainConfig& config, const std::string& folder,
                       const RunOptions& options = {}) {
  TrainHooks hooks;
  hooks.step = [&](const TrainStatus& status) {
    ran.steps.push_back(status);
    if (options.step) options.step(status);
  };
  hooks.eval = [&](const EvalStatus& status) { ran.evals.push_back(status); };
  hooks.event = [&](const RunEvent& event) { ran.events.push_back(event); };
  hooks.note = [&](const std::string& note) { ran.notes.push_back(note); };
  hooks.disturb = options.disturb;
  hooks.stop = [&] {
    if (options.stop && options.stop()) return true;
    return options.stop_after > 0 && !ran.steps.empty() && ran.steps.back().step >= options.stop_after;
  };
  const Backend& backend = options.cuda ? cuda_backend() : options.ref ? ref_backend() : cpu_backend();
  run_ranks({.worlds = thread_communicators(options.ranks),
             .mesh = resolved(config.mesh, options.ranks),
             .device = [&](int) { return options.cuda ? cuda_device() : cpu_device(options.threads); },
             .sharing = options.ranks,
             .variables = options.variables},
            [&](RankContext& rank) {
              const bool leads = Team(rank.ranks).leads();
              Trainer trainer(config, {folder, options.resume, "test"}, backend, rank,
                              leads ? hooks : TrainHooks{.disturb = options.disturb});
              const TrainOutcome outcome = trainer.run();
              if (leads) ran.outcome = outcome;
            });
}

inline Ran train(const TrainConfig& config, const std::string& folder, const RunOptions& options = {}) {
  Ran ran;
  train_into(ran, config, folder, options);
  return ran;
}

// Returns the error a run ends with; internal when it does not.
inline Error train_error(Ran& ran, const TrainConfig& config, const std::string& folder,
                         const RunOptions& options = {}) {
  try {
    train_into(ran, config, folder, options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kInternal, "the run did not fail");
}

// Returns the losses of a whole run in a folder of its own.
inline std::vector<double> losses_of(const TrainConfig& config, const RunOptions& options = {}) {
  const WorkFolder work;
  const Ran ran = train(config, work / "run", options);
  EXPECT_TRUE(ran.outcome.finished);
  return ran.losses();
}

// Returns the largest difference relative to the expected value; infinite where the lengths differ or a
// number is NaN.
inline double worst_share(const std::vector<double>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double share = std::abs(found[i] - wanted[i]) / std::abs(wanted[i]);
    if (!(share <= worst)) worst = std::isnan(share) ? INFINITY : share;
  }
  return worst;
}

using Tensors = std::map<std::string, std::vector<std::byte>>;

inline Tensors tensors_of(const TensorSource& source) {
  Tensors tensors;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    std::vector<std::byte>& bytes = tensors[source.tensors()[i].name];
    bytes.resize(source.tensors()[i].bytes);
    source.read(i, bytes);
  }
  return tensors;
}

// Returns the state in a run's newest checkpoint: weights, averages, optimizer, counters.
inline Tensors state_of(const std::string& folder) {
  const auto newest = CheckpointStore(folder).newest_good();
  return newest ? tensors_of(*newest->state) : Tensors();
}

// Returns the state of a step in use.
inline Tensors state_of(const TrainStep& step) {
  Tensors tensors;
  for (const PersistentValue& value : step.store().layout().values()) {
    std::vector<std::byte>& bytes = tensors[value.name];
    bytes.resize(value.desc.bytes());
    step.store().read(value, bytes);
  }
  return tensors;
}

inline std::vector<float> floats_of(const Tensors& tensors, const std::string& name) {
  const std::vector<std::byte>& bytes = tensors.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

// Returns the names of the tensors that differ in any bit.
inline std::vector<std::string> differing(const Tensors& a, const Tensors& b) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : a)
    if (!b.contains(name) || b.at(name) != bytes) names.push_back(name);
  for (const auto& [name, bytes] : b)
    if (!a.contains(name)) names.push_back(name);
  return names;
}

// Returns metrics.jsonl without the values that depend on the clock, the threads or interruptions.
inline std::vector<std::string> metrics_of(const std::string& folder) {
  std::vector<std::string> lines;
  for_each_metrics_line(RunFiles(folder).metrics(), [&](const Json& line) {
    const std::string what = metrics_text(line, "what");
    const std::string kind = metrics_text(line, "kind");
    if (what == "resume" || what == "stopped" || kind == "start") return;
    Json kept = line;
    if (kind == "timing") kept = {{"kind", kind}, {"step", line["step"]}};
    for (const char* key : {"time", "img_per_s", "interval_s", "data_wait_s", "seconds", "memory_bytes"})
      kept.erase(key);
    lines.push_back(kept.dump());
  });
  return lines;
}

}  // namespace vitrail::testing
