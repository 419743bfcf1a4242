// Several ops run as one node, which the fuse pass alone creates. It keeps its members, so a backend without
// a kernel for the whole runs them one by one. Every member has one output but the last, whose outputs are
// the node's; a last member that updates an input instead has none, and neither has the node. One earlier
// member's output may be kept as the node's last output: it is rounded to its type, and later members read it
// so.
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

  static constexpr int kNone = -1;
  explicit FusedOp(std::vector<Member> members, int kept = kNone);

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
  int kept() const { return kept_; }  // the member whose output is kept; kNone: none is
  bool is_kept(size_t member) const { return kept_ == static_cast<int>(member); }
  // Returns the output descriptions of every member that has one: one of each, then all of the last.
  std::vector<TensorDesc> member_outputs(DescSpan ins) const;
  DescSpan outputs_of(size_t member, DescSpan member_outs) const;
  std::vector<TensorDesc> member_inputs(size_t member, DescSpan ins, DescSpan member_outs) const;

 private:
  std::vector<Member> members_;
  int kept_;
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
