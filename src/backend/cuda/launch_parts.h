// Defines what the launches of copies, sums and updates share: nodes of one kind that were grouped into one
// go into as few launches as hold them.
#pragma once

#include "backend/cuda/launch.h"
#include "ops/grouped.h"

namespace vitrail::cuda {

// One node, or one of the nodes that were grouped into one: its op, and its inputs among those of the group.
struct Part {
  const Op& op;
  DescSpan ins;
  size_t first = 0;

  Place input(size_t i) const { return {Place::In::kInput, ins[i].dtype, first + i}; }
};

inline std::vector<Part> parts_of(const NodeView& node) {
  const auto* grouped = dynamic_cast<const GroupedOp*>(&node.op);
  if (!grouped) return {{node.op, node.ins}};
  std::vector<Part> parts;
  for (const GroupedOp::Part& part : grouped->parts())
    parts.push_back({*part.op, node.ins.subspan(part.first, part.count), part.first});
  return parts;
}

// Accepts f32, bf16 and f16.
inline std::string declines_doubles(DescSpan ins) {
  for (const TensorDesc& desc : ins) {
    if (!desc.packing.empty()) return "changes row-major values only";
    if (!is_float(desc.dtype) || desc.dtype == DType::kF64) return "computes in f32, bf16 and f16";
  }
  return {};
}

inline std::string declines_any_double(const NodeView& node, const DeviceInfo&) {
  return declines_doubles(node.ins);
}

// Holds what a part adds to a call: a segment, beside others of the same rule.
template <typename Call>
struct Share {
  decltype(Call::rule) rule = {};
  std::remove_extent_t<decltype(Call::segments.items)> segment = {};
};

template <typename Call>
using Shares = std::vector<Bound<Share<Call>>>;
template <typename Call>
using UpdateFunction = void (*UpdatesApi::*)(Session&, const Call&);

// Makes as few calls as hold the shares. Parts that find the numbers of the step in different places have
// different rules, which shows at a launch only.
template <typename Call>
void launch_shares(Session& session, UpdateFunction<Call> function, const Shares<Call>& shares,
                   const Call& start, const KernelArgs& args) {
  Call call = start;
  for (const Bound<Share<Call>>& bound : shares) {
    const Share<Call> share = bound.at(args);
    if (call.segments.count == call.segments.kMost || (call.segments.count > 0 && call.rule != share.rule)) {
      invoke(function, session, call);
      call = start;
    }
    call.rule = share.rule;
    call.segments.add(share.segment);
  }
  invoke(function, session, call);
}

// A kernel of these shares, whose calls begin as `start`.
template <typename Call>
Prepared prepared_shares(UpdateFunction<Call> function, const Shares<Call>& shares,
                         const Bound<Call>& start = Bound<Call>(), size_t scratch_bytes = 0) {
  Calls calls;
  calls.add([=](Session& session, const KernelArgs& args) {
    launch_shares(session, function, shares, start.at(args), args);
  });
  return std::move(calls).prepared(scratch_bytes);
}

// The shares of one node, or of the nodes that were grouped into it, but of empty shards.
template <typename Call>
Shares<Call> shares_of(const NodeView& node, Bound<Share<Call>> (*share_of)(const Part&)) {
  Shares<Call> shares;
  for (const Part& part : parts_of(node))
    if (part.ins[0].elems() > 0) shares.push_back(share_of(part));
  return shares;
}

// Adds kernels that take one node, or all nodes of a kind grouped into one.
inline void add_grouped(std::vector<OpKernels>& list, const OpKernels& row) {
  list.push_back(row);
  list.push_back({GroupedOp::kind_of(row.op), row.kernels});
}

}  // namespace vitrail::cuda
