// Conversion between f32 and the 16-bit floats, spread over the thread pool. Knows raw pointers and types,
// not ops.
#pragma once

#include "backend/cpu/gemm/gemm.h"
#include "tensor/tensor.h"

namespace vitrail::cpu {

// Returns whether parallel_convert supports the types: equal ones, or f32 on one side and a 16-bit float on
// the other.
bool converts(DType from, DType to);
struct Conversion {
  DType from, to;
  int64_t elems;
};
void parallel_convert(const CpuContext& context, const Conversion& what, const void* from, void* to);

inline bool is_float16(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace vitrail::cpu
