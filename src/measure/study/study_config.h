// Says what a scaling study measures: models, devices, transports, numbers of ranks, batches, and how often.
// It is read from options or a file by whoever starts it; knows neither, and runs nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/fields.h"

namespace vitrail {

// Updates on images that stay in memory, or training runs on data.
enum class StudyKind { kSteps, kTrain };
template <>
struct EnumNames<StudyKind> {
  static constexpr const char* names[] = {"steps", "train"};
};

// Says what stays the same in strong scaling while ranks are added: the batch of all ranks, or that of each.
enum class StrongScaling { kGlobal, kPerRank, kNone };
template <>
struct EnumNames<StrongScaling> {
  static constexpr const char* names[] = {"global", "per-rank", "none"};
};

inline constexpr const char* kOfRecipe = "recipe";  // stands for the model of a training config

struct StudyConfig {
  StudyKind kind = StudyKind::kSteps;
  std::vector<std::string> models;
  std::string image, recipe, dtype;
  std::vector<std::string> device = {"cpu"}, transports = {"threads"}, ranks = {"1", "2"}, batches = {"16"};
  StrongScaling strong = StrongScaling::kGlobal;
  bool weak = false;
  int64_t repeat = 3, updates = 10, warmup = 2, threads = 1, images = 50000, epochs = 2, seed = 0;
  std::vector<std::string> messages = {"0.01", "0.1", "1", "10"};
  std::string hosts;
  int64_t namespaces = 0;
  std::string rate, predicted, cluster, target;
  double timeout = 900;
  std::vector<std::string> settings = {};  // KEY=VALUE of a training config, for every case

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("kind", c.kind, "steps (updates on images that stay in memory) or train (short runs of --recipe)");
    v("models", c.models, "an architecture by name, or several: vit_tiny_patch16_224,vit_small_patch16_224");
    v("image", c.image, "pixels of an image's side");
    v("recipe", c.recipe, "a training config that the cases take model, data and optimizer from");
    v("device", c.device, "cpu or cuda[:i], or both: times are set side by side");
    v("transports", c.transports,
      "how ranks talk: threads (of one process), mpi (processes), nodes (of --hosts or --namespaces)");
    v("ranks", c.ranks, "numbers of ranks");
    v("batches", c.batches, "images an update: of all ranks (strong global), or of each");
    v("strong", c.strong, "what strong scaling keeps: the batch of all ranks, that of each, or none of it");
    v("weak", c.weak, "also weak scaling: the batches are a rank's, and data grows with the ranks");
    v("repeat", c.repeat, "how often each case is measured");
    v("updates", c.updates, "measured updates of a case (steps)");
    v("warmup", c.warmup, "updates before them (steps)");
    v("epochs", c.epochs, "passes over the data (train)");
    v("threads", c.threads, "threads of each rank");
    v("dtype", c.dtype, "train.dtype of the cases; f32 where neither this nor the recipe says");
    v("images", c.images, "images of an epoch, for the seconds that one takes (steps)");
    v("messages", c.messages, "megabytes of the all-reduces that are measured; 0: none");
    v("hosts", c.hosts, "the nodes, as vt1:2,vt2:2, or a hostfile");
    v("namespaces", c.namespaces, "so many nodes on this host, each in a network namespace (as root)");
    v("rate", c.rate, "what two namespaces send at most, as 1gbit");
    v("seed", c.seed, "seed of the order in which cases run");
    v("timeout", c.timeout, "seconds after which a case has failed");
    v("predicted", c.predicted, "a file of predicted points to draw beside the measured ones");
    v("cluster", c.cluster,
      "predict each update before it is measured, as plan --cluster does on this network (dgx-a100, or a "
      "file); otherwise ranks of this host's cores on ethernet-1g");
    v("target", c.target,
      "the device file to predict with (bench calibrate); otherwise the one that describes this machine");
  }
};

// The fields as settings with their defaults, by the names above.
std::vector<FieldSpec> study_fields();

// Lists may be given as one text with commas. Throws Error(kUsage) for what no study can be made of.
void check_study(StudyConfig& config);
nlohmann::ordered_json to_json(const StudyConfig& config);

// The numbers of a checked list.
std::vector<int64_t> integers_of(const std::vector<std::string>& texts);
std::vector<double> numbers_of(const std::vector<std::string>& texts);

}  // namespace vitrail
