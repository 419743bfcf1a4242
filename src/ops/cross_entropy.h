// The losses: logits [B K] and dense targets [B K] (one-hot, smoothed, mixed or a teacher's) give one loss
// per image, [B]. Softmax: -sum t log softmax(x). Divergence: the same less the targets' entropy. Sigmoid:
// binary cross-entropy of every class, summed or averaged over the classes. The gradient op reads logits,
// targets and the gradient of each image's loss. LossSum adds losses over the micro-batches of an update.
#pragma once

#include "base/enum_names.h"
#include "graph/op.h"

namespace vitrail {

enum class LossKind { kSoftmax, kDivergence, kSigmoidSum, kSigmoidMean };
template <>
struct EnumNames<LossKind> {
  static constexpr const char* names[] = {"softmax", "divergence", "bce_sum", "bce_mean"};
};

class CrossEntropyOp : public Op {
 public:
  explicit CrossEntropyOp(LossKind loss) : loss_(loss) {}

  static constexpr std::string_view kKind = "cross_entropy";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  void grad(GradRecorder& recorder) const override;
  DimsRule dims() const override { return {"K"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape.local('K'); }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return enum_name(loss_); }

  LossKind loss() const { return loss_; }

 private:
  LossKind loss_;
};

class CrossEntropyGradOp : public Op {
 public:
  explicit CrossEntropyGradOp(LossKind loss) : loss_(loss) {}

  static constexpr std::string_view kKind = "cross_entropy_grad";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {"K"}; }
  int64_t reduction_length(DescSpan ins) const override { return ins[0].shape.local('K'); }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override { return enum_name(loss_); }

  LossKind loss() const { return loss_; }

 private:
  LossKind loss_;
};

// Inputs: sums f64 [B], losses [B], weights [B]. Adds each loss times its weight to its place's sum; a loss
// of weight 0 is of no image and may be anything.
class LossSumOp : public Op {
 public:
  static constexpr std::string_view kKind = "loss_sum";
  std::string_view kind() const override { return kKind; }
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {}; }
  PrecisionRole precision_role() const override { return PrecisionRole::kFull; }
  double flops(DescSpan ins, DescSpan outs) const override;
  std::span<const int> updates() const override { return first_inputs(1); }
};

}  // namespace vitrail
