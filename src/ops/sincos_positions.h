// Fixed two-dimensional sine and cosine positions as big_vision makes them: no inputs, output [N D] in the
// order sin x, cos x, sin y, cos y over D/4 frequencies each.
#pragma once

#include "graph/op.h"

namespace vitrail {

class SincosPositionsOp : public Op {
 public:
  SincosPositionsOp(int64_t rows, int64_t columns, int64_t width, DType dtype)
      : rows_(rows), columns_(columns), width_(width), dtype_(dtype) {}

  static constexpr std::string_view kKind = "sincos_positions";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"ND"}; }
  std::string attributes() const override;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t width() const { return width_; }

  // Returns the values, row-major.
  std::vector<double> table() const;

 private:
  int64_t rows_, columns_, width_;
  DType dtype_;
};

}  // namespace vitrail
