// The common interface of weight files: a list of named tensors that can be read one by one. Readers
// (safetensors, npz, torch zip) implement it. Nothing here knows what a ViT is.
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

  // Returns the index of a tensor by its exact name.
  std::optional<size_t> find(std::string_view name) const;

  // Reads tensor `index` into `target`, which holds exactly tensors()[index].bytes. Thread-safe.
  virtual void read(size_t index, std::span<std::byte> target) const = 0;

  // Returns whether a part of a tensor can be read without reading all of it each time.
  virtual bool has_parts(size_t) const { return false; }

  // Reads target.size() bytes of tensor `index` from `offset` on. Thread-safe. Offsets should ascend: a
  // compressed file is then read once. By default the whole tensor is read for each part.
  virtual void read_part(size_t index, size_t offset, std::span<std::byte> target) const;

 protected:
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string path_, format_;

 private:
  mutable std::once_flag indexed_;
  mutable std::unordered_map<std::string_view, size_t> by_name_;  // of tensors_, which no longer change
};

// A tensor to be written: its description and a function for its bytes, called one tensor at a time.
struct TensorToWrite {
  TensorInfo info;
  // Fills the span (info.bytes long). It is called once, in order.
  std::function<void(std::span<std::byte>)> fill;
};

}  // namespace vitrail
