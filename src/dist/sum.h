// The sum over ranks of one range of elements, always in the order of the inputs: the same inputs give the
// same bits. Knows neither ranks nor transports.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace vitrail {

// Whether sums are made of this type: f64, f32, f16, bf16, i64, i32.
bool can_sum(DType dtype);

// Writes ins[0] + ins[1] + ... to every one of `outs`, for `count` elements. 16-bit types are summed in f32
// and rounded once. An output may be one of the inputs; they do not overlap otherwise.
void sum_ranges(DType dtype, std::span<const void* const> ins, std::span<void* const> outs, size_t count);

}  // namespace vitrail
