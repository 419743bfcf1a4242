// Several ops run as one node, which the fuse pass alone creates. It keeps its members, so a backend without
// a kernel for the whole runs them one by one. Every member has one output, and the last one's is the node's;
// a last member that updates an input instead has none, and neither has the node.
#pragma once

#include "graph/op.h"

namespace vitrail {

class FusedOp : public Op {
 public:
  // A member reads the node's input i (source >= 0) or the output of member ~source (source < 0).
  struct Member {
    OpPtr op;
    std::vector<int> sources;
    std::string name = {};  // of the original node: seeds randomness, labels reports
  };

  explicit FusedOp(std::vector<Member> members);

  std::string_view kind() const override { return kind_; }  // "layernorm+linear+bias"
  std::vector<TensorDesc> infer(DescSpan ins) const override;
  // Programs are fused after they are distributed, so no dim of a fused node may be split.
  DimsRule dims() const override { return {kEveryDim}; }
  int64_t reduction_length(DescSpan ins) const override;
  double flops(DescSpan ins, DescSpan outs) const override;
  std::string attributes() const override;
  // A residual that ends the chain may be overwritten by the sum, unless the chain starts from it.
  int in_place_input() const override;

  std::vector<int> updates() const override;

  const std::vector<Member>& members() const { return members_; }
  // Returns the output descriptions of every member that has one.
  std::vector<TensorDesc> member_outputs(DescSpan ins) const;
  static DescSpan outputs_of(size_t member, DescSpan member_outs);
  std::vector<TensorDesc> member_inputs(size_t member, DescSpan ins, DescSpan member_outs) const;

 private:
  std::vector<Member> members_;
  std::string kind_;
};

// Whether an op is the fusion of these classes in order: fuses<SumRowsOp, AccumulateOp>(op).
template <typename... Ops>
bool fuses(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused || fused->members().size() != sizeof...(Ops)) return false;
  size_t at = 0;
  return (is<Ops>(*fused->members()[at++].op) && ...);
}

// Whether an op is class-token attention fused with the qkv linear it reads.
bool is_first_attention(const Op& op);

}  // namespace vitrail
