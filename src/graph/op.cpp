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

}  // namespace vitrail
