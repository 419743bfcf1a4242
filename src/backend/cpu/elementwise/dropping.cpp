#include "backend/cpu/elementwise/dropping.h"

#include <algorithm>

namespace vitrail::cpu {

Dropping::Dropping(const DropoutOp& op, const Shape& shape)
    : op_(op), shape_(shape), threshold_(op.threshold()), scale_(static_cast<float>(op.scale())) {
  if (op.unit() == DropUnit::kElement)
    for (size_t d = 1; d < shape.rank(); ++d)
      if (shape[d].local != shape[d].extent) cut_ = d;
  const size_t first = op.unit() == DropUnit::kSample ? 1 : cut_;
  for (size_t d = first; d < shape.rank(); ++d) length_ *= shape[d].local;
  runs_ = shape.elems() / std::max<int64_t>(1, length_);
}

uint64_t Dropping::start(int64_t run, uint64_t position) const {
  uint64_t index = 0, rest = static_cast<uint64_t>(run), inner = static_cast<uint64_t>(runs_);
  for (size_t d = 0; d < shape_.rank(); ++d) {
    uint64_t place = static_cast<uint64_t>(shape_[d].offset) + (d == 0 ? position : 0);
    if (d < cut_) {
      inner /= static_cast<uint64_t>(shape_[d].local);
      place += rest / inner;
      rest %= inner;
    }
    index = index * static_cast<uint64_t>(shape_[d].extent) + place;
  }
  return index;
}

void Dropping::operator()(const CpuContext& context, const TensorView& counters, Range range, const float* x,
                          float* y) const {
  const auto* counted = static_cast<const int64_t*>(counters.data());
  const auto position = static_cast<uint64_t>(counted[2]);
  const uint64_t stream = dropout_stream(op_.key(), counted[0], counted[1]);
  for (int64_t done = 0; done < range.count;) {
    const int64_t run = (range.first + done) / length_, within = (range.first + done) % length_;
    const int64_t count = std::min(length_ - within, range.count - done);
    const uint64_t sample = position + static_cast<uint64_t>(shape_[0].offset + run);
    if (op_.unit() == DropUnit::kElement)
      context.isa.drop_elements({.x = x + done,
                                 .y = y + done,
                                 .count = count,
                                 .stream = stream,
                                 .index = start(run, position) + static_cast<uint64_t>(within),
                                 .threshold = threshold_,
                                 .scale = scale_});
    else if (dropout_keeps(stream, sample, op_.probability()))
      context.isa.multiply(x + done, scale_, count, y + done);
    else
      std::fill_n(y + done, count, 0.0f);
    done += count;
  }
}

}  // namespace vitrail::cpu
