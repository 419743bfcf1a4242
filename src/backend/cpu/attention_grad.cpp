#include <cstring>

#include "backend/cpu/grads.h"
#include "backend/cpu/tiles.h"

namespace vitrail {

using namespace cpu_tiles;

ScratchNeed attention_grad_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size) {
  return {.worker_bytes = padded_bytes(isa.attention_grad_scratch_elems(queries, keys, head_size))};
}

void parallel_attention_grad(const CpuContext& context, const AttentionGradArgs& args) {
  const AttentionArgs& f = args.forward;
  const Scratch scratch(context, attention_grad_scratch(context.isa, f.queries, f.keys, f.head_size));
  spread(context, context.parallel.heads, f.batch * f.heads, [&](int64_t task, int worker) {
    const int64_t b = task / f.heads, head = task % f.heads;
    const auto at = [&](const AttentionView& s) { return b * s.image + head * s.head; };
    context.isa.attention_grad_tile({f.q + at(f.q_strides), f.k + at(f.k_strides), f.v + at(f.v_strides),
                                     args.dout + at(f.out_strides), f.q_strides.token, f.k_strides.token,
                                     f.v_strides.token, f.out_strides.token, args.dq + at(f.q_strides),
                                     args.dk + at(f.k_strides), args.dv + at(f.v_strides), f.queries, f.keys,
                                     f.head_size, f.scale, scratch.of(worker)});
    for (int64_t silent = f.queries; silent < f.keys; ++silent)  // tokens that did not ask
      std::memset(args.dq + at(f.q_strides) + silent * f.q_strides.token, 0,
                  static_cast<size_t>(f.head_size) * sizeof(float));
  });
}

}  // namespace vitrail
