// Launches of the ops that bring values into the order in which ranks exchange them.
#include "backend/cuda/launch.h"
#include "ops/flat.h"

namespace vitrail::cuda {

namespace {

std::string declines_nothing(const NodeView&, const DeviceInfo&) {
  return {};
}

std::byte* bytes_of(const TensorView& view) {
  return static_cast<std::byte*>(view.data());
}

// A value around one of its dims: `outer` times [extent] times `unit` bytes.
struct Around {
  Around(const TensorDesc& desc, char dim) : unit(size_of(desc.dtype)) {
    const size_t at = *desc.shape.find(dim);
    for (size_t i = 0; i < at; ++i) outer *= static_cast<size_t>(desc.shape[i].local);
    for (size_t i = at + 1; i < desc.shape.rank(); ++i) unit *= static_cast<size_t>(desc.shape[i].local);
    extent = static_cast<size_t>(desc.shape[at].local);
  }
  size_t outer = 1, extent = 0, unit;
};

// Copies between a value and its packed form, part by part.
void move_parts(const KernelArgs& args, const TensorView& whole, const TensorView& packed, char dim,
                const std::vector<int64_t>& cuts, bool pack) {
  const Around around(whole.desc(), dim);
  for (size_t r = 0; r + 1 < cuts.size(); ++r) {
    const auto begin = static_cast<size_t>(cuts[r]), rows = static_cast<size_t>(cuts[r + 1]) - begin;
    std::byte* const in_whole = bytes_of(whole) + begin * around.unit;
    std::byte* const in_packed = bytes_of(packed) + around.outer * begin * around.unit;
    const size_t run = rows * around.unit, pitch = around.extent * around.unit;
    api().moves.copy(session(args), pack ? BlockCopy{in_packed, in_whole, run, pitch, run, around.outer}
                                         : BlockCopy{in_whole, in_packed, pitch, run, run, around.outer});
  }
}

void run_pack(const KernelArgs& args) {
  const auto& op = op_of<PackOp>(args);
  move_parts(args, args.ins[0], args.outs[0], op.dim(), op.cuts(), true);
}

void run_unpack(const KernelArgs& args) {
  const auto& op = op_of<UnpackOp>(args);
  move_parts(args, args.outs[0], args.ins[0], op.dim(), op.cuts(), false);
}

void run_slice(const KernelArgs& args) {
  const Dim& part = op_of<SliceOp>(args).part();
  const TensorDesc& from = args.ins[0].desc();
  const Around around(from, part.name);
  const auto first = static_cast<size_t>(part.offset - from.shape[*from.shape.find(part.name)].offset);
  const size_t run = static_cast<size_t>(part.local) * around.unit;
  api().moves.copy(session(args), {args.outs[0].data(), bytes_of(args.ins[0]) + first * around.unit, run,
                                   around.extent * around.unit, run, around.outer});
}

void run_join(const KernelArgs& args) {
  const auto& offsets = op_of<JoinOp>(args).offsets();
  const size_t unit = size_of(args.outs[0].dtype());
  api().moves.clear(session(args), args.outs[0].data(), args.outs[0].desc().bytes());
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t bytes = args.ins[i].desc().bytes();
    api().moves.copy(session(args), {bytes_of(args.outs[0]) + static_cast<size_t>(offsets[i]) * unit,
                                     args.ins[i].data(), bytes, bytes, bytes, 1});
  }
}

}  // namespace

std::vector<OpKernels> move_kernels() {
  return {{"pack", {cuda_kernel("copied runs", run_pack, declines_nothing)}},
          {"unpack", {cuda_kernel("copied runs", run_unpack, declines_nothing)}},
          {"slice", {cuda_kernel("copied runs", run_slice, declines_nothing)}},
          {"join", {cuda_kernel("copied runs", run_join, declines_nothing)}}};
}

}  // namespace vitrail::cuda
