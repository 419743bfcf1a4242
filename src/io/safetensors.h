// The safetensors container and, apart from files, its header.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "io/tensor_source.h"

namespace vitrail {

// The safetensors container: a JSON header and one block of raw tensors, without holes. Everything in the
// header is checked before anything is allocated for a tensor. Knows no tensor names.
std::unique_ptr<TensorSource> open_safetensors(const std::string& path);
std::unique_ptr<TensorSource> open_safetensors(std::shared_ptr<const ByteSource> bytes);

// Writes atomically, one tensor at a time: in the order given, except that wider element types go first,
// which keeps every tensor aligned to its elements.
void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The header of a safetensors file: names, types, shapes and offsets. It is apart from the reader and the
// writer so that it can be tested without files.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  std::vector<uint64_t> begins;     // offset of each within the data block
  std::map<std::string, std::string> metadata;
};

// Parses and validates the JSON text for a data block of `data_bytes`.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes);

// The JSON text, padded with spaces to a multiple of 8; offsets follow from the order of `tensors`.
std::string safetensors_header_text(const std::vector<const TensorInfo*>& tensors,
                                    const std::map<std::string, std::string>& metadata);

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

}  // namespace vitrail
