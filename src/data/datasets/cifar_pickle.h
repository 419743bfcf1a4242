// The python version of a CIFAR batch, read as data: labels and pixels out of a pickled dict. Runs nothing
// and knows no folders.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace vitrail {

inline constexpr size_t kCifarPixels = 3072;  // planes of 32 x 32: red, green, blue

struct CifarBatch {
  std::vector<int32_t> labels;
  std::string pixels;  // kCifarPixels per sample
};

// Reads a dict with `label_key` ("labels", "fine_labels") and "data". Throws Error(kData).
CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& label_key, int32_t classes);

// Returns the list of strings under `key` ("label_names", "fine_label_names").
std::vector<std::string> read_cifar_names(std::span<const std::byte> bytes, const std::string& key);

}  // namespace vitrail
