// One turn of a pipeline's stage: the forward or the backward half of one micro-batch through one chunk of
// the model, up to the next turn. The op marks where it begins, and its outputs are the inputs of the step
// that the micro-batch reads there: whoever runs the program fills them then, so that they take memory for
// the life of the micro-batch alone. Knows no schedule.
#pragma once

#include "graph/op.h"

namespace vitrail {

class TurnOp : public Op {
 public:
  struct Form {
    bool backward = false;
    int chunk = 0;      // of the model, counted over all stages
    int64_t micro = 0;  // the micro-batch of the update
    std::vector<std::string> names = {};
    std::vector<TensorDesc> inputs = {};
  };
  explicit TurnOp(Form form) : form_(std::move(form)) {}

  static constexpr std::string_view kKind = "turn";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan) const override { return form_.inputs; }
  DimsRule dims() const override { return {kEveryDim}; }
  bool is_launched() const override { return false; }
  double flops(DescSpan, DescSpan) const override { return 0; }
  bool keeps() const override { return true; }
  std::string attributes() const override {
    return strf("%s chunk %d micro-batch %lld", form_.backward ? "backward" : "forward", form_.chunk,
                static_cast<long long>(form_.micro));
  }

  const Form& form() const { return form_; }

 private:
  Form form_;
};

}  // namespace vitrail
