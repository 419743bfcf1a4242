// Labelled images by index, and the way to open them: "cifar10:DIR", "cifar100:DIR", "idx:DIR",
// "folder:DIR", "tar:GLOB", "packed:FILE", "synthetic:CxHxWxCLASSESxCOUNT". Knows nothing of models, batches
// or augmentation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "image/image.h"

namespace vitrail {

struct PixelShape {
  int64_t height = 0, width = 0, channels = 0;
  bool operator==(const PixelShape&) const = default;
};

// A dataset; it is safe to read from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  int64_t size() const { return size_; }
  const std::vector<std::string>& classes() const { return classes_; }
  bool multi_label() const { return multi_label_; }

  // Returns "cat/0001.png" or "data_batch_1.bin#17": it identifies the sample in messages, the same on every
  // machine.
  virtual std::string sample_name(int64_t index) const = 0;

  // Returns the labels, known without decoding: exactly one, unless multi_label(): then any number,
  // ascending.
  virtual std::span<const int32_t> labels(int64_t index) const = 0;

  // Returns the decoded image, RGB or grey. `least_side`: the caller will shrink it so that its shorter side
  // is about this many pixels (0: full size); DecodeLimits::least_side states what a decoder may do with it.
  // Throws Error(kData) naming the sample.
  virtual Image load(int64_t index, int64_t least_side) const = 0;

  // Returns the sample's JPEG, PNG or WebP file as it is stored; nothing where images are stored as pixels.
  virtual std::optional<std::string> encoded(int64_t) const { return std::nullopt; }

  // Returns the stored size of the sample in bytes, known without reading it: the size of its file or of its
  // pixels; 0 where it is unknown.
  virtual uint64_t stored_bytes(int64_t) const;

  // Returns the shape of every image, where all are alike and stored as pixels; nothing where only decoding
  // would reveal it.
  virtual std::optional<PixelShape> pixel_shape() const { return std::nullopt; }

  // Returns a hash of names, labels and classes: it changes when samples are added, removed or change their
  // class.
  uint64_t fingerprint() const;

  // Returns a hash of the content of 64 images, spread evenly: their files where they are stored as files,
  // otherwise their pixels. It changes when the images are replaced under the same names.
  uint64_t contents_fingerprint() const;

 protected:
  int64_t size_ = 0;
  std::vector<std::string> classes_;
  bool multi_label_ = false;
};

// Returns a hash of one sample's content: its file where it is stored as a file, otherwise its pixels;
// nothing for one that cannot be read.
std::optional<uint64_t> contents_key(const Dataset& dataset, int64_t index);

enum class Part { kTrain, kVal, kAll };

// Opens `spec`, FORMAT:PLACE. kAll is every sample of the place, whatever part it belongs to. kVal of data
// that has no validation part is an error; so is a part without samples.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, Part part);

// Does the same, but returns nothing when the data has no validation part of its own.
std::unique_ptr<Dataset> open_part_if_any(const std::string& spec, Part part);

struct DataSplits {
  std::unique_ptr<Dataset> train, val;  // val: none when val_fraction is 0 and the data has no such part
  std::vector<std::string> notes;       // what was decided, one sentence each
};

DataSplits open_data(const DataConfig& config);

// Returns the samples `indices` of `base`, in that order.
std::unique_ptr<Dataset> take_samples(std::shared_ptr<const Dataset> base, std::vector<int64_t> indices);

// Counts the samples of each class.
std::vector<int64_t> class_counts(const Dataset& dataset);

// Returns weights for imbalanced classes: inverse frequency, scaled so that the samples average 1; 0 for
// classes that do not occur.
std::vector<double> class_weights(const Dataset& dataset);

}  // namespace vitrail
