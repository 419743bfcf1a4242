// What every weight file looks like to the rest of io: a list of named tensors that can be read one by
// one. Readers (safetensors, npz, torch zip) implement it; dialect tables and the loader consume it.
// Nothing here knows what a ViT is.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/dtype.h"

namespace vitrail {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // outermost first, row-major
  size_t bytes = 0;            // product(shape) * size_of(dtype), already checked
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // Everything was validated when the source was opened; the order is the file's.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  // Every file the tensors come from; the first is path().
  virtual std::vector<std::string> files() const { return {path_}; }
  const std::string& format() const { return format_; }  // "safetensors", "npz", "torch"

  // Index of a tensor by its exact name.
  std::optional<size_t> find(std::string_view name) const;

  // Reads tensor `index` into `target`, which holds exactly tensors()[index].bytes. Thread-safe.
  virtual void read(size_t index, std::span<std::byte> target) const = 0;

  // Whether parts of a tensor come without reading all of it each time.
  virtual bool has_parts(size_t) const { return false; }

  // The bytes of tensor `index` from `offset` on, target.size() of them. Thread-safe. Meant for ascending
  // offsets: a compressed file is then read once. By default the whole tensor is read for each part.
  virtual void read_part(size_t index, size_t offset, std::span<std::byte> target) const;

 protected:
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string path_, format_;

 private:
  mutable std::once_flag indexed_;
  mutable std::unordered_map<std::string_view, size_t> by_name_;  // of tensors_, which no longer change
};

// A tensor about to be written: its description and its bytes, asked for one at a time.
struct TensorToWrite {
  TensorInfo info;
  // Fills the span (info.bytes long). Called once, in order.
  std::function<void(std::span<std::byte>)> fill;
};

}  // namespace vitrail
