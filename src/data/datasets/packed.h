// The packed cache: a whole dataset in one file (packed:FILE), with a checksum for its table and for every
// image. docs/datasets.md gives the layout byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"

namespace vitrail {

// An image as it is stored: an unchanged JPEG, PNG or WebP file, or pixels.
struct PackedImage {
  bool pixels = false;
  int64_t height = 0, width = 0, channels = 0;  // for pixels
  std::string bytes;

  static PackedImage of_file(std::string bytes) { return {false, 0, 0, 0, std::move(bytes)}; }
  static PackedImage of_pixels(const Image& image);
};

// Writes a packed file. Nothing is left under `path` unless finish() returned.
class PackWriter {
 public:
  PackWriter(const std::string& path, const std::vector<std::string>& classes, bool multi_label);

  // `part` is kTrain or kVal.
  void add(const std::string& name, std::span<const int32_t> labels, Part part, const PackedImage& image);
  void finish();
  uint64_t bytes() const { return file_.position(); }

 private:
  AtomicFile file_;
  std::string head_, rows_;  // of the table: classes, samples
  uint64_t count_ = 0;
};

// Opens a packed file. It checks everything but the images, which are checked one by one as they are loaded.
// Returns nothing when `part` is kVal and no sample belongs to it.
std::unique_ptr<Dataset> open_packed_bytes(std::unique_ptr<ByteSource> bytes, Part part);

// A sample as it is packed: with a `side` the pixels of a square crop, with 0 the file as it is, or the
// pixels where there is none; decoded in any case, so that what is packed can be read.
PackedImage packed(const Dataset& data, int64_t index, int64_t side);

}  // namespace vitrail
