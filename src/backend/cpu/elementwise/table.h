// The table of the vector functions of elementwise ops at one instruction set, and their arguments.
// isa/elementwise.cpp has the bodies and fills the table.
#pragma once

#include <cstdint>

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

struct ElementwiseTable {
  void (*activate)(Activation act, const float* x, int64_t count, float* y);                   // y may be x
  void (*add)(const float* a, const float* b, int64_t count, float* y);                        // y = a + b
  void (*add_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);    // y = x + row
  void (*scale_row)(const float* x, const float* row, int64_t rows, int64_t width, float* y);  // y = x * row
  void (*multiply)(const float* x, float factor, int64_t count, float* y);                     // y may be x
  void (*drop_elements)(const DropElements&);
  void (*activate_grad)(Activation act, const float* x, const float* dy, int64_t count, float* dx);
  void (*tanh_grad)(const float* y, const float* dy, int64_t count, float* dx);
};

}  // namespace vitrail::cpu
