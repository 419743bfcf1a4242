// Several ops run as one node, which the fuse pass alone creates. It keeps its members, so a backend without
// a kernel for the whole runs them one by one. Every member has one output but the last, whose outputs are
// the node's; a last member that updates an input instead has none, and neither has the node. One earlier
// member's output may be kept as the node's last output: it is rounded to its type, and later members read it
// so.
#pragma once

#include "graph/program.h"

namespace vitrail {

class FusedOp : public Op {
 public:
  // A member reads this: an input of the node, which a plain number means, or what an earlier member makes.
  class Source {
   public:
    constexpr Source(int input) : index_(input) {}
    friend constexpr Source made_by(int member) { return {member, true}; }

    constexpr bool is_input() const { return !made_; }
    int input() const;   // throws where it is a member's
    int member() const;  // throws where it is an input
    // Picks what it means, of what belongs to the node's inputs and of what members have made so far.
    template <typename Inputs, typename Made>
    auto pick(const Inputs& ins, const Made& made) const {
      return made_ ? made[static_cast<size_t>(index_)] : ins[static_cast<size_t>(index_)];
    }
    bool operator==(const Source&) const = default;

   private:
    constexpr Source(int index, bool made) : index_(index), made_(made) {}
    int index_;
    bool made_ = false;
  };

  struct Member {
    OpPtr op;
    std::vector<Source> sources;
    ModelStep step = ModelStep::kNone;  // of the original node, for reports
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

  std::span<const int> updates() const override;

  const std::vector<Member>& members() const { return members_; }
  // The kinds of the members, from the kind of a node, which need not be at hand; one that is not fused has
  // its own.
  static std::vector<std::string_view> kinds_in(std::string_view kind);
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
  std::vector<int> updates_;  // those of the last member that are inputs of the node
};

// Returns the source of a member that reads what the member with this index makes.
constexpr FusedOp::Source made_by(int member);
// Returns the inputs that a member reads which reads nothing else, such as the first.
std::vector<int> inputs_of(const FusedOp::Member& member);

// Returns whether an op is the fusion of these classes in order: fuses<SumRowsOp, AccumulateOp>(op).
template <typename... Ops>
bool fuses(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused || fused->members().size() != sizeof...(Ops)) return false;
  size_t at = 0;
  return (is<Ops>(*fused->members()[at++].op) && ...);
}

// Returns whether an op is class-token attention fused with the qkv linear it reads.
bool is_first_attention(const Op& op);

}  // namespace vitrail
