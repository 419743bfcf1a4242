// Attention of any head size and mixture of types in f32 arithmetic, and the attention weights alone. A block
// computes 32 queries of a head and goes over the keys 32 at a time; a warp owns 4 of the queries. A lane has
// one key while scores are computed, and elements of the output while values are summed.
#include "backend/cuda/device/attention_plain.cuh"

#include "backend/cuda/device/attention_forward.cuh"
#include "backend/cuda/device/reduce.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kWarps = kPlainWarps, kQueries = kPlainRows, kKeys = kPlainRows, kOwn = kQueries / kWarps;

// The float4s of a row in shared memory: the row is padded with zeros to whole float4s, an odd number of
// them, so that 32 lanes that each read a row have few bank conflicts.
__host__ __device__ int row_quads(int64_t head_size) {
  return static_cast<int>((head_size + 3) / 4) | 1;
}

struct Block {
  int64_t image, head, first;  // its first query
  int warp, lane, quads;
  float4 *q, *k, *v;  // 32 rows each
  float* weights;     // kQueries x kKeys

  __device__ Block(const AttentionCall& call, float4* shared) {
    const int64_t parts = (call.queries + kQueries - 1) / kQueries, task = blockIdx.x / parts;
    image = task / call.heads, head = task % call.heads, first = blockIdx.x % parts * kQueries;
    warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    quads = row_quads(call.head_size);
    q = shared, k = q + kQueries * quads, v = k + kKeys * quads;
    weights = reinterpret_cast<float*>(v + kKeys * quads);
  }

  __device__ void fetch(float4* target, const PlainHead& source, int64_t from, int64_t rows,
                        int64_t size) const {
    source.fetch(reinterpret_cast<float*>(target), 4 * quads, 4 * quads, from, rows, size);
  }

  // The scores of this lane's key with the warp's queries; -inf beyond the last key.
  __device__ void scores(float (&s)[kOwn], bool key, float scale) const {
    float sums[kOwn] = {};
    for (int i = 0; i < quads; ++i) {
      const float4 b = k[lane * quads + i];
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        const float4 a = q[(warp * kOwn + own) * quads + i];
        sums[own] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
      }
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own) s[own] = key ? sums[own] * scale : -INFINITY;
  }
};
// The running softmax of one query over the keys so far.
struct Running {
  float top = -INFINITY, sum = 0;

  // Adds one score per lane. Returns the lane's weight relative to the new maximum, and in `keep` the factor
  // for older weights.
  __device__ float take(float score, float& keep) {
    const float now = fmaxf(top, lanes_max(score));
    keep = expf(top - now), top = now;
    const float weight = expf(score - now);
    sum = sum * keep + lanes_sum(weight);
    return weight;
  }
};

// o += weights v, for the warp's queries and this lane's elements lane, lane + 32, ...
template <int kParts>
__device__ void add_values(const Block& block, float (&o)[kOwn][kParts]) {
  const float* v = reinterpret_cast<const float*>(block.v);
  for (int key = 0; key < kKeys; ++key) {
    float value[kParts];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int e = block.lane + 32 * part;
      value[part] = e < 4 * block.quads ? v[key * 4 * block.quads + e] : 0.0f;
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
      const float weight = block.weights[(block.warp * kOwn + own) * kKeys + key];
#pragma unroll
      for (int part = 0; part < kParts; ++part) o[own][part] += weight * value[part];
    }
  }
}

template <int kParts>
__global__ void __launch_bounds__(kWarps * 32) plain_attention(const __grid_constant__ AttentionCall call) {
  extern __shared__ float4 float4s[];
  const Block block(call, float4s);
  const PlainHead q(call.q, block.image, block.head), k(call.k, block.image, block.head),
      v(call.v, block.image, block.head), out(call.out, block.image, block.head);
  block.fetch(block.q, q, block.first, call.queries, call.head_size);
  Running running[kOwn];
  float o[kOwn][kParts] = {};
  for (int64_t from = 0; from < call.keys; from += kKeys) {
    __syncthreads();  // the tile before is no longer read
    block.fetch(block.k, k, from, call.keys, call.head_size);
    block.fetch(block.v, v, from, call.keys, call.head_size);
    __syncthreads();
    float s[kOwn];
    block.scores(s, from + block.lane < call.keys, call.scale);
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
      float keep;
      block.weights[(block.warp * kOwn + own) * kKeys + block.lane] = running[own].take(s[own], keep);
#pragma unroll
      for (int part = 0; part < kParts; ++part) o[own][part] *= keep;
    }
    __syncwarp();
    add_values<kParts>(block, o);
  }
#pragma unroll
  for (int own = 0; own < kOwn; ++own) {
    const int64_t row = block.first + block.warp * kOwn + own;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const int e = block.lane + 32 * part;
      if (row < call.queries && e < call.head_size) out.put(row, e, o[own][part] / running[own].sum);
    }
  }
}

// The attention weights alone: their sum is needed first, so the scores are computed twice.
__global__ void __launch_bounds__(kWarps * 32) plain_weights(const __grid_constant__ AttentionCall call) {
  extern __shared__ float4 float4s[];
  const Block block(call, float4s);
  const PlainHead q(call.q, block.image, block.head), k(call.k, block.image, block.head),
      out(call.out, block.image, block.head);
  block.fetch(block.q, q, block.first, call.queries, call.head_size);
  Running running[kOwn];
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t from = 0; from < call.keys; from += kKeys) {
      __syncthreads();  // the tile before is no longer read
      block.fetch(block.k, k, from, call.keys, call.head_size);
      __syncthreads();
      const int64_t key = from + block.lane;
      float s[kOwn], keep;
      block.scores(s, key < call.keys, call.scale);
#pragma unroll
      for (int own = 0; own < kOwn; ++own) {
        const int64_t row = block.first + block.warp * kOwn + own;
        if (pass == 0)
          running[own].take(s[own], keep);
        else if (row < call.queries && key < call.keys)
          out.put(row, key, expf(s[own] - running[own].top) / running[own].sum);
      }
    }
}

void launch(Session& session, const AttentionCall& call, void (*kernel)(AttentionCall), const char* name) {
  const size_t bytes =
      sizeof(float4) * (kQueries + 2 * kKeys) * static_cast<size_t>(row_quads(call.head_size)) +
      sizeof(float) * kQueries * kKeys;
  allow_shared(kernel, bytes, name);
  const unsigned blocks = static_cast<unsigned>(call.batch * call.heads) * blocks_for(call.queries, kQueries);
  kernel<<<blocks, kWarps * 32, bytes, session.stream>>>(call);
  check_launch(name);
}

}  // namespace

void attention_plain(Session& session, const AttentionCall& call) {
  VT_CHECK(call.head_size <= kPlainHeadSize, "attention_plain: heads of more than %lld elements",
           static_cast<long long>(kPlainHeadSize));
  if (call.head_size <= 32) return launch(session, call, plain_attention<1>, "attention_plain");
  if (call.head_size <= 64) return launch(session, call, plain_attention<2>, "attention_plain");
  if (call.head_size <= 128) return launch(session, call, plain_attention<4>, "attention_plain");
  launch(session, call, plain_attention<kPlainHeadSize / 32>, "attention_plain");
}

void attention_weights(Session& session, const AttentionCall& call) {
  launch(session, call, plain_weights, "attention_weights");
}

}  // namespace vitrail::cuda
