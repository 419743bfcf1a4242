#include "graph/op.h"

namespace vitrail {

double Op::flops(DescSpan, DescSpan outs) const {
  double total = 0;
  for (const TensorDesc& out : outs) total += static_cast<double>(out.elems());
  return total;
}

Cost Op::cost(DescSpan ins, DescSpan outs) const {
  Cost cost{.flops = flops(ins, outs)};
  for (const TensorDesc& desc : ins) cost.bytes += static_cast<double>(desc.bytes());
  for (const TensorDesc& desc : outs) cost.bytes += static_cast<double>(desc.bytes());
  return cost;
}

void Op::grad(GradRecorder&) const {
  throw Error(ErrorKind::kInternal, strf("%s has no gradient", std::string(kind()).c_str()));
}

std::span<const int> first_inputs(int count) {
  static constexpr int kInputs[] = {0, 1, 2, 3, 4, 5, 6, 7};
  VT_CHECK(count >= 0 && static_cast<size_t>(count) <= std::size(kInputs), "no op writes its first %d inputs",
           count);
  return std::span(kInputs).first(static_cast<size_t>(count));
}

}  // namespace vitrail
