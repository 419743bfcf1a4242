// What dropout makes of an element, by its place in the whole value, of which a tensor may be a part.
#pragma once

#include "backend/kernel.h"
#include "ops/dropout.h"

namespace vitrail::ref {

class DropMask {
 public:
  DropMask(const DropoutOp& op, const Shape& shape, const TensorView& counters)
      : op_(op), shape_(shape), counters_(static_cast<const int64_t*>(counters.data())) {
    stream_ = dropout_stream(op.key(), counters_[0], counters_[1]);
  }

  // Returns x, which is element i, scaled or zero.
  double operator()(int64_t i, double x) const {
    uint64_t index = 0, rest = static_cast<uint64_t>(i), inner = static_cast<uint64_t>(shape_.elems());
    for (size_t d = 0; d < shape_.rank(); ++d) {
      inner /= static_cast<uint64_t>(shape_[d].local);
      const uint64_t place = rest / inner + static_cast<uint64_t>(shape_[d].offset) +
                             (d == 0 ? static_cast<uint64_t>(counters_[2]) : 0);
      rest %= inner;
      if (d == 0 || op_.unit() == DropUnit::kElement)
        index = index * static_cast<uint64_t>(shape_[d].extent) + place;
    }
    return dropout_keeps(stream_, index, op_.probability()) ? x * op_.scale() : 0.0;
  }

 private:
  const DropoutOp& op_;
  const Shape& shape_;
  const int64_t* counters_;
  uint64_t stream_;
};

}  // namespace vitrail::ref
