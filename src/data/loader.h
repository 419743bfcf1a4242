// Batches for training and evaluation, prefetched by worker threads into a ring of staging buffers. The
// content of a batch depends on the settings and its number alone: not on the workers, and not on whether
// earlier batches were read. Knows no model and no device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "data/augment/augment_config.h"
#include "data/loader_config.h"
#include "data/sample_source.h"
#include "image/preprocess_config.h"
#include "tensor/buffer.h"

namespace vitrail {

// One micro-batch; the spans stay valid until the next call of next(), seek() or the destructor.
struct Batch {
  int64_t index = 0;  // micro-batches before it since step 0
  int64_t step = 0, micro = 0, epoch = 0;
  // The images in the form of LoaderSettings::form: images [B C Y X], normalised; or pixels [B Y X C] with
  // recipes [B]; or recipes alone.
  std::span<const float> images;
  std::span<const uint8_t> pixels;
  std::span<const ImageRecipe> recipes;
  std::span<const float> targets;   // [B K], dense: one-hot or multi-label, smoothed, mixed
  std::span<const float> weights;   // [B]: 0 for padding and skipped samples, otherwise 1 or the class weight
  std::span<const int32_t> labels;  // [B], the first label; -1 where there is none
  std::span<const int64_t> samples;  // [B], index in the dataset; -1 for padding
};

class Loader {
 public:
  Loader(const Dataset& dataset, LoaderSettings settings, Purpose purpose);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the bytes that a loader with these settings will hold in Category::kStaging.
  static size_t staging_bytes(const LoaderSettings& settings);

  // Returns the memory that its workers may hold at once while they decode: the largest image once per
  // worker. For a dataset of files it samples some, evenly spread.
  static size_t decoding_bytes(const LoaderConfig& config, const Dataset& dataset);

  // Waits for the next micro-batch. An exception of a worker is rethrown here, at the batch it belongs to and
  // at every later call. Calling it past the end of an evaluation is an internal error.
  const Batch& next();

  // Returns the micro-batch that next() will return, if it is ready. It consumes nothing and reports no
  // error; next() does. Its spans stay valid until the call of next() after the one that returns it.
  std::optional<Batch> peek();

  // Makes the next micro-batch the first of this step.
  void seek(int64_t step);

  int64_t steps_per_epoch() const { return source_.steps_per_epoch(); }
  // Returns the micro-batches in one pass of an evaluation. Training has no end: -1.
  int64_t batches() const { return source_.batches(); }

  // Returns the seconds that next() waited for workers since the last call.
  double take_wait_seconds();
  // Returns the seconds that all workers together spent making batches since the last call.
  double work_seconds();
  // Returns the processor's seconds of all workers so far.
  double cpu_seconds();

  // The distinct samples skipped so far, in the order they came up.
  const std::vector<BadSample>& bad_samples() const { return bad_; }

 private:
  struct Slot {
    Buffer memory;
    BatchParts parts;
    int64_t chunks_left = 0;
    std::vector<BadSample> bad;  // by place in the batch, once complete
    std::exception_ptr error;    // the one of the earliest chunk
    int64_t error_chunk = 0;
  };

  void start_workers();
  void stop_workers();
  void work();
  bool has_task() const;
  void run_task(int64_t batch, int64_t chunk, std::unique_lock<std::mutex>& lock);
  Slot& slot_of(int64_t batch) { return slots_[static_cast<size_t>(batch % std::ssize(slots_))]; }
  void wait_for_next();
  void pass_batch(Slot& slot);
  void release_held();
  void take_bad(Slot& slot);
  Batch shown(int64_t batch);

  const LoaderSettings settings_;
  SampleSource source_;
  std::vector<Slot> slots_;
  Batch shown_;
  std::vector<BadSample> bad_;
  std::set<int64_t> bad_indices_;
  double wait_seconds_ = 0;
  std::exception_ptr failed_;

  std::mutex mutex_;
  std::condition_variable task_ready_, batch_ready_;
  bool stopping_ = false, paused_ = false;
  int64_t running_ = 0;  // chunks being made
  double work_seconds_ = 0, cpu_seconds_ = 0;
  int64_t task_batch_ = 0, task_chunk_ = 0;  // the next chunk to make
  int64_t next_ = 0;                         // the batch that next() will return
  bool holding_ = false;                     // whether the consumer still reads batch next_ - 1
  std::vector<std::thread> workers_;
};

std::unique_ptr<Loader> make_train_loader(const Dataset& dataset, const LoaderSettings& settings);

// Makes a loader with the same settings, without augmentation, mixing, smoothing, class weights and
// balancing.
std::unique_ptr<Loader> make_eval_loader(const Dataset& dataset, const LoaderSettings& settings);

}  // namespace vitrail
