// The ops that bring values into the order of an exchange: copies of runs of bytes, in any type.
#include "ops/flat.h"

#include <cstring>

#include "backend/ref/loops.h"

namespace vitrail::ref {

namespace {

// A value around one of its dims: `outer` times [extent] times `run` bytes.
struct Around {
  Around(const TensorDesc& desc, char dim) {
    const size_t at = *desc.shape.find(dim);
    for (size_t i = 0; i < at; ++i) outer *= desc.shape[i].local;
    for (size_t i = at + 1; i < desc.shape.rank(); ++i) run *= static_cast<size_t>(desc.shape[i].local);
    extent = desc.shape[at].local;
  }
  int64_t outer = 1, extent = 0;
  size_t run = 1;
};

// Calls copy(bytes in the value, bytes in the packed form, length) for every run of a part.
template <typename Copy>
void each_run(const TensorDesc& whole, char dim, const std::vector<int64_t>& cuts,
              const LaunchContext& context, const Copy& copy) {
  Around around(whole, dim);
  around.run *= size_of(whole.dtype);
  const auto parts = static_cast<int64_t>(cuts.size()) - 1;
  context.pool.run(parts * around.outer, [&](int64_t task, int) {
    const int64_t part = task / around.outer, o = task % around.outer;
    const int64_t begin = cuts[static_cast<size_t>(part)], rows = cuts[static_cast<size_t>(part) + 1] - begin;
    copy(static_cast<size_t>(o * around.extent + begin) * around.run,
         static_cast<size_t>(around.outer * begin + o * rows) * around.run,
         static_cast<size_t>(rows) * around.run);
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
  const Around around(from, part.name);
  const size_t run = around.run * size_of(from.dtype), length = static_cast<size_t>(part.local) * run;
  const int64_t first = part.offset - from.shape[*from.shape.find(part.name)].offset;
  for (int64_t o = 0; o < around.outer; ++o)
    std::memcpy(bytes_of(args.outs[0]) + static_cast<size_t>(o) * length,
                bytes_of(args.ins[0]) + static_cast<size_t>(o * around.extent + first) * run, length);
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
