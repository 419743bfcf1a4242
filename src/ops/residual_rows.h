// Computes what follows an exchange in a block, as one pass over rows: a bias, dropout of elements, a scale,
// dropout of images, the residual and the layernorm of the sum. Which of these are there, but for the
// residual, is the op's own. Inputs x [... D], bias [D], scale [D], residual [... D], norm weight [D], norm
// bias [D], counters of both dropouts i64 [Z3], without what is not there; outputs the sum and its norm. The
// fuse pass alone makes it, for backends that have a kernel.
#pragma once

#include <optional>
#include <utility>

#include "ops/dropout.h"

namespace vitrail {

class ResidualRowsOp : public Op {
 public:
  struct Form {
    bool bias = false, scale = false, norm = false;
    double eps = 0;  // of the norm
    std::optional<DropoutOp> elements = {}, images = {};
  };
  explicit ResidualRowsOp(Form form) : form_(std::move(form)) {}

  static constexpr std::string_view kKind = "residual_rows";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"DZ"}; }
  int64_t reduction_length(DescSpan ins) const override { return form_.norm ? ins[norm_at()].elems() : 1; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  int in_place_input() const override { return 0; }

  const Form& form() const { return form_; }
  bool drops() const { return form_.elements || form_.images; }
  // Each returns where an input stands; those of bias and scale hold only where the op has them.
  size_t bias_at() const { return 1; }
  size_t scale_at() const { return form_.bias ? 2 : 1; }
  size_t residual_at() const { return scale_at() + (form_.scale ? 1 : 0); }
  size_t norm_at() const { return residual_at() + 1; }

 private:
  Form form_;
};

}  // namespace vitrail
