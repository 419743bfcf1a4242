// The header of a safetensors file: names, types, shapes and offsets. It is apart from the reader and the
// writer so that it can be tested without files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_source.h"

namespace vitrail {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  std::vector<uint64_t> begins;     // offset of each within the data block
  std::map<std::string, std::string> metadata;
};

// Parses and validates the JSON text for a data block of `data_bytes`.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes);

// Returns the JSON text, padded with spaces to a multiple of 8; offsets follow from the order of `tensors`.
std::string safetensors_header_text(const std::vector<const TensorInfo*>& tensors,
                                    const std::map<std::string, std::string>& metadata);

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

}  // namespace vitrail
