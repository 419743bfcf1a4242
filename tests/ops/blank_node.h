// What a blind launch sees of its node: an op that knows nothing, and views that have addresses alone.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "graph/op.h"

namespace vitrail {

// An op that knows nothing, before bytes that are no field of any op.
class BlankOp : public Op {
 public:
  BlankOp() { std::fill(std::begin(bytes_), std::end(bytes_), static_cast<unsigned char>(0x7f)); }
  std::string_view kind() const override { throw asked(); }
  std::vector<TensorDesc> infer(DescSpan) const override { throw asked(); }
  DimsRule dims() const override { throw asked(); }

 private:
  static Error asked() { return Error(ErrorKind::kInternal, "a launch asks the op"); }
  unsigned char bytes_[512];
};

inline std::vector<TensorView> without_shapes(std::span<const TensorView> views) {
  std::vector<TensorView> bare;
  for (const TensorView& view : views) {
    TensorDesc desc = view.desc();
    desc.shape = Shape();
    desc.packed_rows = 0, desc.packed_bytes = 0;
    bare.emplace_back(view.data(), desc);
  }
  return bare;
}

}  // namespace vitrail
