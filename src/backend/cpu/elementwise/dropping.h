// Drops elements or whole images of a part of a value, in any ranges of it: the mask follows places in the
// whole value alone.
#pragma once

#include "backend/cpu/context.h"
#include "ops/dropout.h"

namespace vitrail::cpu {

class Dropping {
 public:
  Dropping(const DropoutOp& op, const Shape& shape);

  struct Range {
    int64_t first, count;
  };
  // x and y are those of the range's first element; y may be x.
  void operator()(const CpuContext& context, const TensorView& counters, Range range, const float* x,
                  float* y) const;

 private:
  // A run of elements that are neighbours in the whole value, or an image.
  uint64_t start(int64_t run, uint64_t position) const;

  DropoutOp op_;
  Shape shape_;
  size_t cut_ = 0;      // the last dim that is a part, or the first
  int64_t length_ = 1;  // of a run
  int64_t runs_ = 0;
  uint64_t threshold_;
  float scale_;  // of what is kept
};

}  // namespace vitrail::cpu
