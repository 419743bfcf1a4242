// What the launches of copies, sums and updates share: nodes of one kind that were grouped into one go into
// as few launches as hold them.
#pragma once

#include <deque>
#include <initializer_list>

#include "backend/cuda/launch.h"
#include "ops/grouped.h"

namespace vitrail::cuda {

template <typename T>
T* numbers(const TensorView& view) {
  return reinterpret_cast<T*>(view.as<double>());
}

// Accepts f32, bf16 and f16 among the first `count` inputs; the inputs after them are numbers of the step.
inline std::string declines_doubles(const NodeView& node, size_t count) {
  for (const TensorDesc& desc : node.ins.first(count)) {
    if (!desc.packing.empty()) return "changes row-major values only";
    if (!is_float(desc.dtype) || desc.dtype == DType::kF64) return "computes in f32, bf16 and f16";
  }
  return {};
}

inline std::string declines_any_double(const NodeView& node, const DeviceInfo&) {
  return declines_doubles(node, node.ins.size());
}

// One node, or each of the nodes that were grouped into one.
struct Part {
  const Op& op;
  std::span<const TensorView> ins;
};

inline std::vector<Part> parts_of(const KernelArgs& args) {
  const auto* many = dynamic_cast<const GroupedOp*>(&args.op);
  if (!many) return {{args.op, args.ins}};
  std::vector<Part> parts;
  for (const GroupedOp::Part& part : many->parts())
    parts.push_back({*part.op, args.ins.subspan(part.first, part.count)});
  return parts;
}

inline std::vector<NodeView> nodes_of(const NodeView& node) {
  const auto* many = dynamic_cast<const GroupedOp*>(&node.op);
  if (!many) return {node};
  std::vector<NodeView> nodes;
  for (const GroupedOp::Part& part : many->parts())
    nodes.push_back({*part.op, node.ins.subspan(part.first, part.count), {}});
  return nodes;
}

// Runs the parts in as few launches as hold them; call_of makes the call of one part.
template <typename Call>
void launch_parts(const KernelArgs& args, void (*launch)(Session&, const Call&), Call (*call_of)(const Part&),
                  const Call& start = {}) {
  Call call = start;
  for (const Part& part : parts_of(args)) {
    if (part.ins[0].desc().elems() == 0) continue;  // an empty shard
    const Call one = call_of(part);
    if (call.segments.count == call.segments.kMost || (call.segments.count > 0 && call.rule != one.rule)) {
      launch(session(args), call);
      call = start;
    }
    call.rule = one.rule;
    call.segments.add(one.segments.items[0]);
  }
  launch(session(args), call);
}

// Adds kernels that take one node, or all nodes of a kind grouped into one. Called while the list of all
// kernels is made, once.
inline void add_grouped(std::vector<OpKernels>& list,
                        std::initializer_list<std::pair<std::string_view, Kernel>> rows) {
  static std::deque<std::string> names;  // rows refer to them
  for (const auto& [op, kernel] : rows) {
    list.push_back({op, {kernel}});
    names.push_back(GroupedOp::kind_of(op));
    list.push_back({names.back(), {kernel}});
  }
}

}  // namespace vitrail::cuda
