// The table of the vector functions of elementwise ops at one instruction set, and their arguments.
// isa/elementwise.cpp has the bodies and fills the table.
#pragma once

#include <cstdint>
// Ops are unknown to the code of an instruction set: what their headers define must not be compiled for it.
#ifndef VT_ISA
#include "ops/elementwise.h"
#endif

// The functions that are the whole kernel of an op: X(the op's class, the function). One line puts a function
// into the table of every instruction set and among the kernels that launch.cpp offers.
#define VT_MAPS(X) \
  X(AddOp, add)    \
  X(TanhGradOp, tanh_grad)

namespace vitrail::cpu {

enum class Activation { kNone, kGeluErf, kGeluTanh };

// y = x * scale where the counter hash of (stream, index + i), shifted right by 11, is at least `threshold`,
// else 0.
struct DropElements {
  const float* x = nullptr;
  float* y = nullptr;
  int64_t count = 0;
  uint64_t stream = 0, index = 0, threshold = 0;
  float scale = 1;
};

// y from a and b element by element; b is null for an op of one input, and y may be a or b.
using MapFunction = void (*)(const float* a, const float* b, int64_t count, float* y);

struct ElementwiseTable {
  void (*activate)(Activation act, const float* x, int64_t count, float* y);                   // y may be x
  void (*add_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);    // y = x + row
  void (*scale_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);  // y = x * row
  void (*multiply)(const float* x, float factor, int64_t count, float* y);                     // y may be x
  void (*drop_elements)(const DropElements&);
  void (*activate_grad)(Activation act, const float* x, const float* dy, int64_t count, float* dx);
#define VT_DECLARE_MAP(op, function) MapFunction function;
  VT_MAPS(VT_DECLARE_MAP)
#undef VT_DECLARE_MAP
};

}  // namespace vitrail::cpu
