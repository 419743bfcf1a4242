#include "ops/grouped.h"

#include <algorithm>

namespace vitrail {

GroupedOp::GroupedOp(std::vector<Part> parts)
    : parts_(std::move(parts)), kind_(kind_of(parts_.front().op->kind())) {
  for (const Part& part : parts_)
    for (int input : part.op->updates()) updates_.push_back(static_cast<int>(part.first) + input);
}

std::vector<TensorDesc> GroupedOp::infer(DescSpan ins) const {
  for (const Part& part : parts_)
    VT_CHECK(part.op->infer(ins.subspan(part.first, part.count)).empty(), "%s: a part has an output",
             kind_.c_str());
  return {};
}

double GroupedOp::flops(DescSpan ins, DescSpan) const {
  double total = 0;
  for (const Part& part : parts_) total += part.op->flops(ins.subspan(part.first, part.count), {});
  return total;
}

std::string GroupedOp::attributes() const {
  return strf("%zu parts", parts_.size());
}

int64_t GroupedOp::reduction_length(DescSpan ins) const {
  int64_t longest = 1;
  for (const Part& part : parts_)
    longest = std::max(longest, part.op->reduction_length(ins.subspan(part.first, part.count)));
  return longest;
}

}  // namespace vitrail
