#include "ops/fused.h"

#include <algorithm>

#include "ops/expect.h"

namespace vitrail {

FusedOp::FusedOp(std::vector<Member> members) : members_(std::move(members)) {
  for (const Member& member : members_) {
    if (!kind_.empty()) kind_ += '+';
    kind_ += member.op->kind();
  }
}

std::vector<TensorDesc> FusedOp::member_inputs(size_t member, DescSpan ins, DescSpan member_outs) const {
  std::vector<TensorDesc> descs;
  for (int source : members_[member].sources)
    descs.push_back(source >= 0 ? ins[source] : member_outs[~source]);
  return descs;
}

std::vector<TensorDesc> FusedOp::member_outputs(DescSpan ins) const {
  std::vector<TensorDesc> outs;
  for (size_t i = 0; i < members_.size(); ++i)
    outs.push_back(members_[i].op->infer(member_inputs(i, ins, outs)).front());
  return outs;
}

std::vector<TensorDesc> FusedOp::infer(DescSpan ins) const {
  return {member_outputs(ins).back()};
}

double FusedOp::flops(DescSpan ins, DescSpan) const {
  const std::vector<TensorDesc> outs = member_outputs(ins);
  double total = 0;
  for (size_t i = 0; i < members_.size(); ++i)
    total += members_[i].op->flops(member_inputs(i, ins, outs), {&outs[i], 1});
  return total;
}

int FusedOp::in_place_input() const {
  const Member& last = members_.back();
  if (last.op->kind() != "add") return -1;
  const int residual = std::max(last.sources[0], last.sources[1]);
  for (size_t i = 0; i + 1 < members_.size(); ++i)
    for (int source : members_[i].sources)
      if (source == residual) return -1;
  return residual;
}

std::string FusedOp::attributes() const {
  std::string text;
  for (const Member& member : members_) {
    const std::string own = member.op->attributes();
    if (own.empty()) continue;
    if (!text.empty()) text += ' ';
    text += own;
  }
  return text;
}

}  // namespace vitrail
