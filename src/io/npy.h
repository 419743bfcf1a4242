// The header of one .npy array: element type, order, shape. The dict literal is read by its grammar, never
// evaluated. Knows no files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/tensor_source.h"

namespace vitrail {

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

}  // namespace vitrail
