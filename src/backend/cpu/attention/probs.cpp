// Attention weights written to memory, for inspection: a head's keys serve as the packed weight of a GEMM
// with its queries, and every row goes through a softmax. Threads divide the heads first, then the rows.
#include "backend/cpu/attention/attention.h"
#include "backend/cpu/norm/norm.h"
#include "backend/cpu/tiles.h"

namespace vitrail::cpu {

namespace {

// One worker's scratch: a head's scaled keys as contiguous rows, the same keys packed, and the scratch of a
// tile.
struct Parts {
  int64_t keys, packed, tile;

  Parts(const IsaKernels& isa, int64_t queries, int64_t key_count, int64_t head_size)
      : keys(round_up(key_count * head_size, 16)),
        packed(round_up(isa.packed_elems(key_count, head_size), 16)),
        tile(isa.gemm_scratch_elems(queries, key_count, head_size)) {}
};

void copy_scaled(const float* rows, int64_t stride, int64_t count, int64_t width, float scale, float* out) {
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < width; ++i) out[row * width + i] = scale * rows[row * stride + i];
}

}  // namespace

ScratchNeed attention_probs_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size) {
  const Parts parts(isa, queries, keys, head_size);
  return {.worker_bytes = padded_bytes(parts.keys + parts.packed + parts.tile)};
}

void parallel_attention_probs(const CpuContext& context, const AttentionArgs& args) {
  const Scratch scratch(context,
                        attention_probs_scratch(context.isa, args.queries, args.keys, args.head_size));
  const Parts parts(context.isa, args.queries, args.keys, args.head_size);
  spread(context, context.parallel.heads, args.batch * args.heads, [&](int64_t task, int worker) {
    const int64_t b = task / args.heads, head = task % args.heads;
    const auto offset = [&](const AttentionView& s) { return b * s.image + head * s.head; };
    float *keys = scratch.of(worker), *packed = keys + parts.keys;
    copy_scaled(args.k + offset(args.k_strides), args.k_strides.token, args.keys, args.head_size, args.scale,
                keys);
    context.isa.pack_weights(keys, args.keys, args.head_size, packed);
    context.isa.gemm_tile({.a = args.q + offset(args.q_strides),
                           .lda = args.q_strides.token,
                           .packed = packed,
                           .c = args.out + task * args.queries * args.keys,
                           .ldc = args.keys,
                           .rows = args.queries,
                           .n = args.keys,
                           .k = args.head_size,
                           .col_begin = 0,
                           .col_end = args.keys,
                           .epilogue = {},
                           .scratch = packed + parts.packed});
  });
  parallel_softmax(context, args.out, args.batch * args.heads * args.queries, args.keys, args.out);
}

}  // namespace vitrail::cpu
