// Launches of the ops that bring values into the order in which ranks exchange them.
#include "backend/cuda/launch.h"
#include "ops/flat.h"

namespace vitrail::cuda {

namespace {

std::string declines_nothing(const NodeView&, const DeviceInfo&) {
  return {};
}

// A value around one of its dims in bytes: `runs` times `pitch`, of which each element of the dim has `unit`.
struct ByteSplit {
  ByteSplit(const TensorDesc& desc, char dim) {
    const DimSplit split(desc.shape, dim);
    runs = static_cast<size_t>(split.outer);
    unit = static_cast<size_t>(split.inner) * size_of(desc.dtype);
    pitch = static_cast<size_t>(split.extent) * unit;
  }
  size_t runs = 0, pitch = 0, unit = 0;
};

// A copy between two places, each so many bytes from the start of an operand.
void add_copy(Calls& calls, const Place& to, const Place& from, const BlockCopy& sizes) {
  Bound<BlockCopy> copy(sizes);
  calls.add(&MovesApi::copy, copy.bind(copy->to, to).bind(copy->from, from));
}

Place further(Place place, size_t bytes) {
  place.offset += bytes;
  return place;
}

// Copies between a value and its packed form, part by part.
Prepared prepare_parts(const TensorDesc& desc, const Place& whole, const Place& packed, char dim,
                       const std::vector<int64_t>& cuts, bool pack) {
  const ByteSplit split(desc, dim);
  Calls calls;
  for (size_t r = 0; r + 1 < cuts.size(); ++r) {
    const auto begin = static_cast<size_t>(cuts[r]), rows = static_cast<size_t>(cuts[r + 1]) - begin;
    const Place in_whole = further(whole, begin * split.unit),
                in_packed = further(packed, split.runs * begin * split.unit);
    const size_t run = rows * split.unit;
    if (pack)
      add_copy(calls, in_packed, in_whole,
               {.to_pitch = run, .from_pitch = split.pitch, .run = run, .runs = split.runs});
    else
      add_copy(calls, in_whole, in_packed,
               {.to_pitch = split.pitch, .from_pitch = run, .run = run, .runs = split.runs});
  }
  return std::move(calls).prepared();
}

Prepared prepare_pack(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<PackOp>(node);
  return prepare_parts(node.ins[0], input(node, 0), output(node), op.dim(), op.cuts(), true);
}

Prepared prepare_unpack(const NodeView& node, const DeviceInfo&) {
  const auto& op = op_of<UnpackOp>(node);
  return prepare_parts(node.outs[0], output(node), input(node, 0), op.dim(), op.cuts(), false);
}

Prepared prepare_slice(const NodeView& node, const DeviceInfo&) {
  const Dim& part = op_of<SliceOp>(node).part();
  const TensorDesc& from = node.ins[0];
  const ByteSplit split(from, part.name);
  const auto first = static_cast<size_t>(part.offset - from.shape[*from.shape.find(part.name)].offset);
  const size_t run = static_cast<size_t>(part.local) * split.unit;
  Calls calls;
  add_copy(calls, output(node), further(input(node, 0), first * split.unit),
           {.to_pitch = run, .from_pitch = split.pitch, .run = run, .runs = split.runs});
  return std::move(calls).prepared();
}

struct ClearCall {
  void* target = nullptr;
  size_t bytes = 0;
};
void clear(Session& session, const ClearCall& call) {
  api().moves.clear(session, call.target, call.bytes);
}

Prepared prepare_join(const NodeView& node, const DeviceInfo&) {
  const auto& offsets = op_of<JoinOp>(node).offsets();
  const size_t unit = size_of(node.outs[0].dtype);
  Calls calls;
  Bound<ClearCall> all({.bytes = node.outs[0].bytes()});
  calls.add(clear, all.bind(all->target, output(node)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t bytes = node.ins[i].bytes();
    add_copy(calls, further(output(node), static_cast<size_t>(offsets[i]) * unit),
             input(node, static_cast<int>(i)),
             {.to_pitch = bytes, .from_pitch = bytes, .run = bytes, .runs = 1});
  }
  return std::move(calls).prepared();
}

}  // namespace

std::vector<OpKernels> move_kernels() {
  return {row<PackOp>({cuda_kernel("copied runs", prepare_pack, declines_nothing)}),
          row<UnpackOp>({cuda_kernel("copied runs", prepare_unpack, declines_nothing)}),
          row<SliceOp>({cuda_kernel("copied runs", prepare_slice, declines_nothing)}),
          row<JoinOp>({cuda_kernel("copied runs", prepare_join, declines_nothing)})};
}

}  // namespace vitrail::cuda
