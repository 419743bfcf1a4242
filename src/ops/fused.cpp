#include "ops/fused.h"

#include <algorithm>

#include "base/text.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/expect.h"
#include "ops/layernorm.h"
#include "ops/linear.h"

namespace vitrail {

int FusedOp::Source::input() const {
  VT_CHECK(!made_, "input %d of a fused op is what its member %d makes", index_, index_);
  return index_;
}
int FusedOp::Source::member() const {
  VT_CHECK(made_, "member %d of a fused op is its input %d", index_, index_);
  return index_;
}

std::vector<std::string_view> FusedOp::kinds_in(std::string_view kind) {
  return split(kind, '+');
}

std::vector<int> inputs_of(const FusedOp::Member& member) {
  std::vector<int> inputs;
  for (const FusedOp::Source& source : member.sources) inputs.push_back(source.input());
  return inputs;
}

FusedOp::FusedOp(std::vector<Member> members, int kept) : members_(std::move(members)), kept_(kept) {
  for (const Member& member : members_) {
    if (!kind_.empty()) kind_ += '+';
    kind_ += member.op->kind();
  }
  const Member& last = members_.back();
  for (int input : last.op->updates())
    if (last.sources[input].is_input()) updates_.push_back(last.sources[input].input());
}

std::vector<TensorDesc> FusedOp::member_inputs(size_t member, DescSpan ins, DescSpan member_outs) const {
  std::vector<TensorDesc> descs;
  for (const Source& source : members_[member].sources) descs.push_back(source.pick(ins, member_outs));
  return descs;
}

std::vector<TensorDesc> FusedOp::member_outputs(DescSpan ins) const {
  std::vector<TensorDesc> outs;
  for (size_t i = 0; i < members_.size(); ++i)
    for (TensorDesc& out : members_[i].op->infer(member_inputs(i, ins, outs))) outs.push_back(std::move(out));
  VT_CHECK(outs.size() >= members_.size() - 1, "%s: only the last member may lack an output", kind_.c_str());
  return outs;
}

DescSpan FusedOp::outputs_of(size_t member, DescSpan member_outs) const {
  return member + 1 < members_.size() ? member_outs.subspan(member, 1) : member_outs.subspan(member);
}

std::vector<TensorDesc> FusedOp::infer(DescSpan ins) const {
  const std::vector<TensorDesc> outs = member_outputs(ins);
  const DescSpan last = outputs_of(members_.size() - 1, outs);
  std::vector<TensorDesc> results(last.begin(), last.end());
  if (kept_ != kNone) results.push_back(outs[static_cast<size_t>(kept_)]);
  return results;
}

std::span<const int> FusedOp::updates() const {
  VT_CHECK(updates_.size() == members_.back().op->updates().size(), "%s updates what a member makes",
           kind_.c_str());
  return updates_;
}

double FusedOp::flops(DescSpan ins, DescSpan) const {
  const std::vector<TensorDesc> outs = member_outputs(ins);
  const bool one_token = is_first_attention(*this);
  double total = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    const std::vector<TensorDesc> own = member_inputs(i, ins, outs);
    if (one_token && is<LinearOp>(*members_[i].op))
      total += first_attention_flops(outs[i], own[1]);
    else if (!one_token || is<LayernormOp>(*members_[i].op))
      total += members_[i].op->flops(own, outputs_of(i, outs));
  }
  return total;
}

int FusedOp::in_place_input() const {
  const Member& last = members_.back();
  if (!is<AddOp>(*last.op)) return -1;
  const Source& residual = last.sources[last.sources[0].is_input() ? 0 : 1];
  for (size_t i = 0; i + 1 < members_.size(); ++i)
    for (const Source& source : members_[i].sources)
      if (source == residual) return -1;
  return residual.is_input() ? residual.input() : -1;
}

bool is_first_attention(const Op& op) {
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused) return false;
  const auto* last = dynamic_cast<const AttentionOp*>(fused->members().back().op.get());
  return last && last->queries() == QueryScope::kClassToken;
}

std::string FusedOp::attributes() const {
  std::string text;
  for (const Member& member : members_) {
    const std::string own = member.op->attributes();
    if (own.empty()) continue;
    if (!text.empty()) text += ' ';
    text += own;
  }
  if (kept_ != kNone) text += " keeps " + std::string(members_[static_cast<size_t>(kept_)].op->kind());
  return text;
}

int64_t FusedOp::reduction_length(DescSpan ins) const {
  const std::vector<TensorDesc> outs = member_outputs(ins);
  int64_t longest = 1;
  for (size_t m = 0; m < members_.size(); ++m)
    longest = std::max(longest, members_[m].op->reduction_length(member_inputs(m, ins, outs)));
  return longest;
}

}  // namespace vitrail
