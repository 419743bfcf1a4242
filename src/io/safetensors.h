// The safetensors container: a JSON header and one block of raw tensors, without holes. Everything in the
// header is checked before anything is allocated for a tensor. Knows no tensor names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/tensor_source.h"

namespace vitrail {

std::unique_ptr<TensorSource> open_safetensors(const std::string& path);
std::unique_ptr<TensorSource> open_safetensors(std::shared_ptr<const ByteSource> bytes);

// Writes atomically, one tensor at a time: in the order given, except that wider element types go first,
// which keeps every tensor aligned to its elements.
void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace vitrail
