// numpy's containers: the header of one array, and a zip of arrays. Knows no tensor names.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "io/zip.h"

namespace vitrail {

// The header of one .npy array: element type, order, shape. The dict literal is read by its grammar, never
// evaluated. Knows no files.
struct NpyHeader {
  DType dtype = DType::kF32;
  bool column_major = false;  // numpy's fortran_order
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes before the elements
};

constexpr size_t kMaxNpyHeader = 64 << 10;  // magic and version included

// `start` is the beginning of the array's file: all of it, or at least kMaxNpyHeader bytes.
NpyHeader parse_npy_header(std::span<const std::byte> start);

// Returns magic, version and dict for a row-major array, padded to a multiple of 64. bf16 is stored as 2 raw
// bytes.
std::string npy_header_text(DType dtype, std::span<const int64_t> shape);

// numpy's .npz: a zip of .npy arrays, named by entry without the ".npy". Knows no tensor names.
std::unique_ptr<TensorSource> open_npz(const std::string& path);
// `zip` was read from a file of this name.
std::unique_ptr<TensorSource> open_npz(std::unique_ptr<const ZipReader> zip, const std::string& name);

// Writes atomically, asking for one tensor at a time, in order; entries are stored, not deflated.
void write_npz(const std::string& path, const std::vector<TensorToWrite>& tensors);

}  // namespace vitrail
