// Computes what follows an exchange in a block, as one pass over rows: a bias, a scale, the residual and the
// layernorm of the sum. Which of bias, scale and norm are there is the op's own. Inputs x [... D], bias [D],
// scale [D], residual [... D], norm weight [D], norm bias [D], without what is not there; outputs the sum and
// its norm. The fuse pass alone makes it, for backends that have a kernel.
#pragma once

#include "graph/op.h"

namespace vitrail {

class ResidualRowsOp : public Op {
 public:
  struct Form {
    bool bias = false, scale = false, norm = false;
    double eps = 0;  // of the norm
  };
  explicit ResidualRowsOp(Form form) : form_(form) {}

  static constexpr std::string_view kKind = "residual_rows";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"D"}; }
  int64_t reduction_length(DescSpan ins) const override { return form_.norm ? ins.back().elems() : 1; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  const Form& form() const { return form_; }
  // Each returns where an input stands; those of bias and scale hold only where the op has them.
  size_t bias_at() const { return 1; }
  size_t scale_at() const { return form_.bias ? 2 : 1; }
  size_t residual_at() const { return scale_at() + (form_.scale ? 1 : 0); }
  size_t norm_at() const { return residual_at() + 1; }

 private:
  Form form_;
};

}  // namespace vitrail
