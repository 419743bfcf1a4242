// A part of a value and the whole of it: copies between the two, both row-major in memory.
#pragma once

#include <cstddef>

#include "tensor/shape.h"

namespace vitrail {

// The shape with every dim whole.
Shape whole_of(const Shape& part);

// Copies the elements that `part` describes out of the whole value, or into it.
void copy_out_part(const Shape& part, size_t elem_bytes, const void* whole, void* target);
void copy_in_part(const Shape& part, size_t elem_bytes, const void* source, void* whole);

}  // namespace vitrail
