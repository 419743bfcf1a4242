// What a Model holds, and the way of images through it: checked, decoded, computed in chunks, checked again.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/predictor.h"
#include "vitrail/model.h"

namespace vitrail {

struct ModelParts {
  ModelParts(const OpenedModel& opened, const EngineOptions& options, bool turn);

  const ModelCard& card() const { return predictor.card(); }
  // Throws Error(kData) for a task that needs classes where the model has none.
  void require(PredictTask task) const;

  // Computes a row for each image, in chunks of the model's batch, so that the memory of decoded images stays
  // bounded.
  RowsOfFloats rows(PredictTask task, std::span<const ImageView> images);
  // Computes the rows of preprocessed images; `first` is the number of the first of `total`, for errors.
  std::vector<float> rows(PredictTask task, std::span<const float> inputs, size_t first, size_t total);
  // Returns the inputs of `most` of the images, from `first`, or of those that are left.
  std::vector<float> inputs(std::span<const ImageView> images, size_t first, size_t most) const;
  std::vector<std::vector<AttentionMap>> maps(std::span<const ImageView> images,
                                              const AttentionOptions& options);
  std::vector<Prediction> predictions(std::span<const float> probabilities, int top_k) const;

  // Computes files and reports their results until the list ends or the callback returns false; `complete`
  // adds to a result what the task makes of its row. The parts must outlive the call, whatever the callback
  // does with the model.
  void stream(PredictTask task, std::span<const std::string> paths, const FileCallback& callback,
              const std::function<void(FileResult&)>& complete = {});
  void stream_maps(std::span<const std::string> paths, const AttentionOptions& options,
                   const AttentionCallback& callback);

  bool upright;
  int threads;  // of the host, which prepare the images of a call
  Predictor predictor;

 private:
  // Calls `each` with batches of at most so many files, and all paths, until it returns false.
  using BatchCall = std::function<bool(const ImageBatch&, const std::vector<std::string>&)>;
  void batches(std::span<const std::string> paths, int64_t most, const BatchCall& each) const;
};

}  // namespace vitrail
