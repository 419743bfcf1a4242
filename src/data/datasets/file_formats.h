// Single files of datasets, read as data: a pickled CIFAR batch, a file of MNIST's format, a CSV of labels.
// Knows no folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace vitrail {

// The python version of a CIFAR batch, read as data: labels and pixels out of a pickled dict. Runs nothing
// and knows no folders.

inline constexpr size_t kCifarPixels = 3072;  // planes of 32 x 32: red, green, blue

struct CifarBatch {
  std::vector<int32_t> labels;
  std::string pixels;  // kCifarPixels a sample
};

// Reads a dict with `label_key` ("labels", "fine_labels") and "data". Throws Error(kData).
CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& label_key, int32_t classes);

// The list of texts under `key` ("label_names", "fine_label_names").
std::vector<std::string> read_cifar_names(std::span<const std::byte> bytes, const std::string& key);

// One file of MNIST's format: big-endian extents, then bytes; gzipped or not.
struct IdxFile {
  std::unique_ptr<ByteSource> bytes;
  std::vector<int64_t> extents;
  uint64_t header = 0;  // where the values start
};

// A file of `dims` extents and exactly the bytes they speak of. A gzipped one is unpacked into memory, if
// there is enough of it.
IdxFile open_idx_bytes(std::unique_ptr<ByteSource> bytes, bool zipped, size_t dims);

// Labels of a flat folder of images, out of a CSV: `filename,label` (one class each), `filename,labels`
// (any number, separated by ;) or `filename,NAME,NAME...` with 0 or 1 a cell.
struct LabelRow {
  std::string file;
  std::vector<std::string> labels;
};

struct LabelSheet {
  bool multi_label = false;
  std::vector<std::string> classes;  // of the header, for 0/1 columns; a class may have no image
  std::vector<LabelRow> rows;
};

// Throws Error(kData) with the line number.
LabelSheet parse_labels(std::string_view csv);

}  // namespace vitrail
