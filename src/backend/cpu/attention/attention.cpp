#include "backend/cpu/attention/attention.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/tiles.h"

namespace vitrail::cpu {
namespace {

constexpr int64_t kMostQueries = 288;  // query rows of a task

// The number of query rows of one task. A head is split where the threads then finish earlier, although each
// part packs the head's K and V again, which costs about as much as kPackQueries query rows.
int64_t query_block(int threads, int64_t heads, int64_t queries) {
  constexpr int64_t kPackQueries = 12, kLeastQueries = 24;
  int64_t best = 0, least = 0;
  for (int64_t parts = ceil_div(queries, kMostQueries); parts <= queries; ++parts) {
    const int64_t block = ceil_div(queries, parts);
    const int64_t time = ceil_div(heads * parts, threads) * (block + kPackQueries);
    if (best == 0 || time < least) {
      best = block;
      least = time;
    }
    if (block <= kLeastQueries) break;
  }
  return best;
}

}  // namespace

ScratchNeed attention_scratch(const IsaKernels& isa, int64_t queries, int64_t keys, int64_t head_size) {
  return {0, padded_bytes(isa.attention_scratch_elems(std::min(queries, kMostQueries), keys, head_size))};
}

void parallel_attention(const CpuContext& context, const AttentionArgs& args) {
  const Scratch scratch(context, attention_scratch(context.isa, args.queries, args.keys, args.head_size));
  const int64_t block = query_block(context.pool.threads(), args.batch * args.heads, args.queries),
                blocks = ceil_div(args.queries, block);
  spread(context, context.parallel.heads, args.batch * args.heads * blocks, [&](int64_t task, int worker) {
    const int64_t query = task % blocks * block, head = task / blocks % args.heads,
                  b = task / blocks / args.heads;
    const auto offset = [&](const AttentionView& s, int64_t token) {
      return b * s.image + token * s.token + head * s.head;
    };
    context.isa.attention_tile(
        {args.q + offset(args.q_strides, query), args.k + offset(args.k_strides, 0),
         args.v + offset(args.v_strides, 0), args.q_strides.token, args.k_strides.token, args.v_strides.token,
         args.out + offset(args.out_strides, query), args.out_strides.token,
         std::min(block, args.queries - query), args.keys, args.head_size, args.scale, scratch.of(worker)});
  });
}

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
    for (int64_t silent = f.queries; silent < f.keys; ++silent)  // tokens that are no queries
      std::memset(args.dq + at(f.q_strides) + silent * f.q_strides.token, 0,
                  static_cast<size_t>(f.head_size) * sizeof(float));
  });
}

}  // namespace vitrail::cpu
