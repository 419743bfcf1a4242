// Dropout of elements or of whole images. The mask is the counter-based hash of base/rng.h at the index of
// the element in the whole tensor, and is recomputed wherever it is needed.
#include "backend/cuda/device/packs.cuh"
#include "backend/cuda/device/rows.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kDropThreads = 256;

// The device's copy of base/rng.h's counter_hash.
__device__ uint64_t hash_at(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

struct Mask {
  const DropoutCall& call;
  uint64_t stream, start;

  __device__ explicit Mask(const DropoutCall& c)
      : call(c),
        stream(hash_at(hash_at(c.key, static_cast<uint64_t>(c.counters[0])),
                       static_cast<uint64_t>(c.counters[1]))),
        start(c.base + static_cast<uint64_t>(c.counters[2]) * c.step) {}

  __device__ uint64_t place(int64_t i) const {
    uint64_t at = start;
    for (int t = 0; t < call.term_count; ++t) {
      const DropoutCall::Term& term = call.terms[t];
      at += static_cast<uint64_t>(i / term.inner % term.local * term.stride);
    }
    return at;
  }
  __device__ float factor(uint64_t at) const {
    return hash_at(stream, at) >> 11 >= call.threshold ? call.scale : 0;
  }
  __device__ float apply(float x, float f) const { return f == 0 ? 0.0f : x * f; }
};

// Says whether eight neighbours have eight consecutive indices in the whole tensor, one index, or any.
enum class Places { kNeighbours, kOne, kAny };

template <Places kPlaces>
__global__ void __launch_bounds__(kDropThreads)
    drop(const __grid_constant__ DropoutCall call, Elements x, Elements y) {
  const Mask mask(call);
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * kDropThreads + threadIdx.x) * 8;
  if (i + 8 <= call.count && kPlaces != Places::kAny) {
    float v[8];
    unpack(fetch(x, i), x.dtype, v);
    const uint64_t at = mask.place(i);
    const float first = mask.factor(at);
#pragma unroll
    for (int e = 0; e < 8; ++e)
      v[e] = mask.apply(v[e], kPlaces == Places::kOne || e == 0 ? first : mask.factor(at + e));
    y.put8(i, v);
    return;
  }
  for (int64_t j = i; j < i + 8 && j < call.count; ++j)
    y.put(j, mask.apply(x.get(j), mask.factor(mask.place(j))));
}

}  // namespace

void dropout(Session& session, const DropoutCall& call) {
  const DropoutCall::Term& last = call.terms[call.term_count - 1];
  const unsigned blocks = blocks_for(call.count, 8 * kDropThreads);
  if (last.inner % 8 == 0)
    drop<Places::kOne><<<blocks, kDropThreads, 0, session.stream>>>(call, call.x, call.y);
  else if (last.inner == 1 && last.stride == 1 && (call.term_count == 1 || last.local % 8 == 0))
    drop<Places::kNeighbours><<<blocks, kDropThreads, 0, session.stream>>>(call, call.x, call.y);
  else
    drop<Places::kAny><<<blocks, kDropThreads, 0, session.stream>>>(call, call.x, call.y);
  check_launch("dropout");
}

}  // namespace vitrail::cuda
