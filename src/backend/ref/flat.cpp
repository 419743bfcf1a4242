// The ops that bring values into the order of an exchange: copies of runs of bytes, in any type.
#include "ops/flat.h"

#include <cstring>

#include "backend/ref/loops.h"

namespace vitrail::ref {

namespace {

// The bytes of one element of the dim with everything inside it.
size_t run_bytes(const DimSplit& split, DType dtype) {
  return static_cast<size_t>(split.inner) * size_of(dtype);
}

// Calls copy(bytes in the value, bytes in the packed form, length) for every run of a part.
template <typename Copy>
void each_run(const TensorDesc& whole, char dim, const std::vector<int64_t>& cuts,
              const LaunchContext& context, const Copy& copy) {
  const DimSplit split(whole.shape, dim);
  const size_t run = run_bytes(split, whole.dtype);
  const auto parts = static_cast<int64_t>(cuts.size()) - 1;
  context.pool.run(parts * split.outer, [&](int64_t task, int) {
    const int64_t part = task / split.outer, o = task % split.outer;
    const int64_t begin = cuts[static_cast<size_t>(part)], rows = cuts[static_cast<size_t>(part) + 1] - begin;
    copy(static_cast<size_t>(o * split.extent + begin) * run,
         static_cast<size_t>(split.outer * begin + o * rows) * run, static_cast<size_t>(rows) * run);
  });
}

std::byte* bytes_of(const TensorView& view) {
  return static_cast<std::byte*>(view.data());
}

void pack(const KernelArgs& args) {
  const auto& op = static_cast<const PackOp&>(args.op);
  each_run(args.ins[0].desc(), op.dim(), op.cuts(), args.context,
           [&](size_t whole, size_t packed, size_t length) {
             std::memcpy(bytes_of(args.outs[0]) + packed, bytes_of(args.ins[0]) + whole, length);
           });
}

void unpack(const KernelArgs& args) {
  const auto& op = static_cast<const UnpackOp&>(args.op);
  each_run(args.outs[0].desc(), op.dim(), op.cuts(), args.context,
           [&](size_t whole, size_t packed, size_t length) {
             std::memcpy(bytes_of(args.outs[0]) + whole, bytes_of(args.ins[0]) + packed, length);
           });
}

void slice(const KernelArgs& args) {
  const Dim& part = static_cast<const SliceOp&>(args.op).part();
  const TensorDesc& from = args.ins[0].desc();
  const DimSplit split(from.shape, part.name);
  const size_t run = run_bytes(split, from.dtype), length = static_cast<size_t>(part.local) * run;
  const int64_t first = part.offset - from.shape[*from.shape.find(part.name)].offset;
  for (int64_t o = 0; o < split.outer; ++o)
    std::memcpy(bytes_of(args.outs[0]) + static_cast<size_t>(o) * length,
                bytes_of(args.ins[0]) + static_cast<size_t>(o * split.extent + first) * run, length);
}

void join(const KernelArgs& args) {
  const auto& offsets = static_cast<const JoinOp&>(args.op).offsets();
  const size_t unit = size_of(args.outs[0].dtype());
  std::byte* const target = bytes_of(args.outs[0]);
  size_t filled = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const size_t begin = static_cast<size_t>(offsets[i]) * unit;
    std::memset(target + filled, 0, begin - filled);
    std::memcpy(target + begin, bytes_of(args.ins[i]), args.ins[i].desc().bytes());
    filled = begin + args.ins[i].desc().bytes();
  }
  std::memset(target + filled, 0, args.outs[0].desc().bytes() - filled);
}

}  // namespace

std::vector<OpKernels> flat_kernels() {
  return {
      as_it_is<PackOp, pack>(),
      as_it_is<UnpackOp, unpack>(),
      as_it_is<SliceOp, slice>(),
      as_it_is<JoinOp, join>(),
  };
}

}  // namespace vitrail::ref
