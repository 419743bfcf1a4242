// One kind of op on many values at once, none of which reads what another writes: the updates of all
// parameters as one node, for backends on which launches are expensive. Inputs are those of the parts, one
// after another. The group_updates pass alone creates it.
#pragma once

#include "graph/op.h"

namespace vitrail {

class GroupedOp : public Op {
 public:
  struct Part {
    OpPtr op;                     // without outputs
    size_t first = 0, count = 0;  // the range of its inputs
  };

  explicit GroupedOp(std::vector<Part> parts);

  std::string_view kind() const override { return kind_; }  // "grouped adam_update"
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  DimsRule dims() const override { return {kEveryDim}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  std::span<const int> updates() const override { return updates_; }

  const std::vector<Part>& parts() const { return parts_; }
  static std::string kind_of(std::string_view part_kind) { return "grouped " + std::string(part_kind); }

 private:
  std::vector<Part> parts_;
  std::string kind_;
  std::vector<int> updates_;
};

}  // namespace vitrail
