/// \file
/// A Vision Transformer loaded from any published format, and its predictions for images.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/error.h"
#include "vitrail/export.h"
#include "vitrail/image.h"

namespace vitrail {

/// How a model is run.
struct ModelOptions {
  std::string device = "cpu";  ///< "cpu", "cuda" or "cuda:1"
  std::string dtype = "f32";   ///< "f32", "bf16", "int8"; on a GPU "f32", "tf32", "bf16", "f16", "fp8"
  int threads = 0;             ///< of the CPU; 0: one per core
  int64_t image_size = 0;      ///< an input size other than the model's own, square; 0 keeps its own
  int64_t batch = 1;           ///< the most images computed at once; memory is planned for it
  std::string arch = {};       ///< timm's name, for bare weight files that fit several architectures
  int64_t image_height = 0;    ///< both sides, instead of image_size, for an input that is not square
  int64_t image_width = 0;     ///< with image_height
  bool upright = false;        ///< turn files and encoded images as their EXIF orientation says
};

/// A class with its probability.
struct Prediction {
  int index = 0;          ///< the class number
  std::string label;      ///< its name, or "class 17" when the model carries none
  float probability = 0;  ///< 0..1
};

/// Rows of numbers, one for each of several images: `count` rows of `width`.
struct RowsOfFloats {
  int64_t count = 0, width = 0;  ///< rows, and numbers in each
  std::vector<float> values;     ///< row after row
  /// Returns row `i`, valid while these rows are; throws Error(kUsage) where there is none.
  std::span<const float> operator[](int64_t i) const& {
    if (i < 0 || i >= count || width < 0 || width > static_cast<int64_t>(values.size()) / count)
      throw Error(ErrorKind::kUsage, "there is no row " + std::to_string(i) + " of " + std::to_string(count) +
                                         " rows of " + std::to_string(width) + " in " +
                                         std::to_string(values.size()) + " values");
    return std::span(values).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
  /// A row of rows that nobody keeps would refer to memory that is gone: keep the rows, then ask for one.
  std::span<const float> operator[](int64_t i) const&& = delete;
};

/// The attention maps that Model::attention() computes.
struct AttentionOptions {
  std::string method = "rollout";  ///< "heads", "mean" (of one block), "rollout" (through all), or "all"
  int64_t layer = -1;              ///< the block of "heads" and "mean", from 0; -1: the last
};

/// A map of the model's attention over the patches: one weight a patch.
struct AttentionMap {
  std::string name;               ///< "mean", "rollout", "head-03"
  int64_t rows = 0, columns = 0;  ///< patches
  std::vector<float> values;      ///< row by row; larger is more
};

/// The result of one file of a stream: a row of numbers, or its error.
struct FileResult {
  size_t index = 0;                     ///< in the list
  std::vector<Prediction> predictions;  ///< of classify_files()
  std::span<const float> values;  ///< probabilities, logits or features, whatever the stream computes; valid
                                  ///< during the callback
  std::optional<Error> error;     ///< why the file has no result, with its kind; none: it has one
};

/// Called for every file in the order of the list; false ends the stream.
using FileCallback = std::function<bool(const FileResult&)>;

/// The attention maps of one file of a stream, or its error.
struct FileAttention {
  size_t index = 0;                ///< in the list
  std::vector<AttentionMap> maps;  ///< those of Model::attention(); none where there is an error
  std::optional<Error> error;      ///< why the file has no maps, with its kind
};

/// Called for every file in the order of the list; false ends the stream.
using AttentionCallback = std::function<bool(const FileAttention&)>;

struct ModelParts;  // what a Model holds: the library's own

/// A model ready to run. Every member function may be called from several threads at once: images are decoded
/// in parallel, the model's own runs take turns. A Model may be moved from while others use it, even by a
/// callback of its own: calls that have begun end as if it had not been, later ones throw Error(kUsage).
/// Only its destruction must wait for the other threads.
///
/// An image is given in any form of ImageView (a path, encoded bytes, pixels, a preprocessed tensor); several
/// may mix the forms, and are computed `batch()` at a time. Of several images the error names the one.
class VITRAIL_API Model {
 public:
  /// Loads a model folder, a weight file (Hugging Face, timm, torchvision or google, recognised by its
  /// contents), a training run's folder, or a bundled model by its name. Memory for `options.batch` images is
  /// planned before anything is allocated: Error(kMemory) says what would fit.
  static Model load(const std::string& path_or_name, const ModelOptions& options = {});
  ~Model();
  Model(Model&& other) noexcept;
  Model& operator=(Model&& other) noexcept;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// The `top_k` most likely classes of each image, most likely first. Throws Error(kData) where the model
  /// has no classes, as logits() and their streams do.
  std::vector<std::vector<Prediction>> classify(std::span<const ImageView> images, int top_k = 5) const;
  std::vector<Prediction> classify(const ImageView& image, int top_k = 5) const;

  /// The output of the head for every class.
  RowsOfFloats logits(std::span<const ImageView> images) const;
  std::vector<float> logits(const ImageView& image) const;
  /// The same for one or more preprocessed images, [N, channels, height, width].
  std::vector<float> logits(std::span<const float> tensors) const;

  /// The pooled features before the head.
  RowsOfFloats embed(std::span<const ImageView> images) const;
  std::vector<float> embed(const ImageView& image) const;

  /// Maps of the model's attention over each image. Memory for them is planned at the call; throws
  /// Error(kMemory) where it does not fit.
  std::vector<std::vector<AttentionMap>> attention(std::span<const ImageView> images,
                                                   const AttentionOptions& options = {}) const;
  std::vector<AttentionMap> attention(const ImageView& image, const AttentionOptions& options = {}) const;

  /// Computes the same of many files: worker threads decode a bounded number ahead while the model computes.
  /// A file that cannot be read is reported as its own result and ends nothing. An exception of the callback
  /// ends the stream and is rethrown here; the callback may use the model.
  void classify_files(std::span<const std::string> paths, const FileCallback& callback, int top_k = 5) const;
  /// The same for the output of the head.
  void logits_files(std::span<const std::string> paths, const FileCallback& callback) const;
  /// The same for the pooled features.
  void embed_files(std::span<const std::string> paths, const FileCallback& callback) const;
  /// The same for maps of attention.
  void attention_files(std::span<const std::string> paths, const AttentionCallback& callback,
                       const AttentionOptions& options = {}) const;

  /// The preprocessed input of the model, planar [channels, height, width].
  std::vector<float> preprocess(const ImageView& image) const;

  int64_t classes() const;                         ///< 0: no classifier
  int64_t channels() const;                        ///< of an input: 3 for RGB
  int64_t image_height() const;                    ///< rows of an input
  int64_t image_width() const;                     ///< columns of an input
  int64_t feature_width() const;                   ///< floats of an embedding
  int64_t batch() const;                           ///< the most images computed at once
  const std::vector<std::string>& labels() const;  ///< one a class, or none; valid while the model is

 private:
  explicit Model(std::shared_ptr<ModelParts> parts);
  std::shared_ptr<ModelParts> parts() const;
  std::shared_ptr<ModelParts> taken() noexcept;

  mutable std::mutex mutex_;  // guards the pointer alone
  std::shared_ptr<ModelParts> parts_;
};

}  // namespace vitrail
