// The content of a batch: which samples, with which augmentation, targets and weights. Fills a part of a
// batch at a time and has no mutable state, so workers share one. It owns neither threads nor memory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/augment/augmenter.h"
#include "data/loader_config.h"
#include "data/sampler.h"
#include "image/image_recipe.h"
#include "image/preprocess_config.h"
#include "tensor/memory_source.h"

namespace vitrail {

struct BadSample {
  int64_t sample = 0;
  std::string name, reason;
  Error error;  // what reading it threw; `reason` is its text
};

// The rows of a micro-batch that one of several ranks takes.
struct BatchShare {
  int64_t first = 0, rows = 0;
  int64_t global = 0;  // rows of all ranks together
};

// Hands a batch from the loader that made it to others that need the same one, elsewhere. All of them pass
// the same number of bytes in the same order.
class BatchRelay {
 public:
  virtual ~BatchRelay() = default;
  virtual void pass(std::span<std::byte> bytes) = 0;  // the giver's become everybody's
};

struct LoaderSettings {
  LoaderConfig loader;
  AugmentConfig augment;
  PreprocessConfig preprocess;
  uint64_t seed = 0;
  int64_t micro_batch = 1;   // rows that this loader makes
  int64_t chunk = 8;         // samples a worker claims at a time: few where each takes milliseconds
  int64_t accumulation = 1;  // micro-batches per step, on every rank
  int64_t channels = 3;
  int64_t classes = 1;
  double smoothing = 0;      // of labels: on = 1 - smoothing + smoothing / classes, off = smoothing / classes
  int64_t first_row = 0;     // of them among those of all ranks
  int64_t global_batch = 0;  // rows of all ranks together; 0: micro_batch
  int64_t all_rows() const { return global_batch > 0 ? global_batch : micro_batch; }
  void take(const BatchShare& share) {
    micro_batch = share.rows;
    first_row = share.first;
    global_batch = share.global;
  }
  ImageForm form = ImageForm::kFloats;           // for training; chosen by choose_images()
  MemorySource* memory = nullptr;                // where batches lie; null: this process's memory
  std::function<void(const BadSample&)> on_bad;  // called once per sample, by the thread that calls next()
  std::shared_ptr<BatchRelay> relay = {};        // shares the batches; null: they are this loader's alone
  bool receives = false;                         // another loader makes them and gives them
  bool targets_only =
      false;               // images are neither decoded nor kept: what cannot be read is not found out here
  bool limits_bad = true;  // whether too many of them are an error here; false: the ranks count them together
};

enum class Purpose { kTrain, kEval };

// Throws Error(kConfig) where settings contradict each other or the dataset.
void validate(const LoaderSettings& settings, const Dataset& dataset, Purpose purpose);

// Returns how many samples may be skipped, and the error where there are more.
int64_t bad_allowed(const LoaderConfig& config, const Dataset& dataset);
Error too_many_bad(size_t count, const std::string& last, const std::string& reason,
                   const LoaderConfig& config);

// The memory of one micro-batch. Parts that LoaderSettings::form does not need are empty.
struct BatchParts {
  std::span<float> images;
  std::span<uint8_t> pixels;
  std::span<ImageRecipe> recipes;
  std::span<float> targets, weights;
  std::span<int32_t> labels;
  std::span<int64_t> samples;

  // Lays the parts over `memory`, or only counts the bytes they take.
  static size_t bytes(const LoaderSettings& settings);
  static BatchParts over(std::byte* memory, const LoaderSettings& settings);
};

class SampleSource {
 public:
  SampleSource(const Dataset& dataset, const LoaderSettings& settings, Purpose purpose);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t batches() const { return purpose_ == Purpose::kEval ? steps_per_epoch_ : -1; }
  int64_t bad_allowed() const { return vitrail::bad_allowed(settings_.loader, dataset_); }

  // The number of chunks of a batch, which do not depend on each other.
  int64_t chunks() const;
  void fill_chunk(int64_t batch, int64_t chunk, const BatchParts& parts, std::vector<BadSample>& bad) const;

 private:
  struct Place {
    int64_t epoch, position;
  };
  Place place_of(int64_t batch, int64_t row) const;
  void fill_row(Place place, int64_t row, const BatchParts& parts, std::vector<BadSample>& bad) const;
  void load_row(int64_t sample, Place place, int64_t row, const BatchParts& parts) const;
  void load_sample_image(int64_t sample, Place place, int64_t row, const BatchParts& parts) const;
  void fill_target(std::span<const int32_t> labels, std::span<float> target) const;
  void mix_chunk(Place first, int64_t begin, int64_t end, const BatchParts& parts) const;

  const Dataset& dataset_;
  LoaderSettings settings_;
  Purpose purpose_;
  int64_t steps_per_epoch_;
  Sampler sampler_;
  std::optional<Augmenter> augmenter_;
  std::vector<double> class_weights_;
};

}  // namespace vitrail
