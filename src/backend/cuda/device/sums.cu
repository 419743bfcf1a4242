// Sums over rows: the gradients of biases, position embeddings and scales.
#include "backend/cuda/device/columns.cuh"
#include "backend/cuda/device/rows.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kLanes = 32, kShares = 16;

struct Targets {
  Elements target[Totals::kMax] = {};
  int64_t width, length;  // of one target, of all
  bool add;
};

__global__ void __launch_bounds__(kLanes* kShares)
    add_partials(const float* partials, int64_t parts, Targets to) {
  __shared__ float shares[kShares][kLanes];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kLanes + threadIdx.x;
  float sum = 0;
  if (column < to.length) {
#pragma unroll 8
    for (int64_t p = threadIdx.y; p < parts; p += kShares) sum += partials[p * to.length + column];
  }
  shares[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= to.length) return;
  for (int s = 1; s < kShares; ++s) sum += shares[s][threadIdx.x];
  const int64_t place = column % to.width;
  Elements target = to.target[0];
  for (int64_t t = 1; t < Totals::kMax; ++t)
    if (column / to.width == t) target = to.target[t];
  target.put(place, to.add ? target.get(place) + sum : sum);
}

}  // namespace

void finish_sums(Session& session, const float* partials, int64_t parts, const Totals& totals) {
  if (totals.count == 0) return;
  Targets targets{.width = totals.width, .length = totals.width * totals.count, .add = totals.add};
  for (int t = 0; t < totals.count; ++t) targets.target[t] = totals.target[t];
  add_partials<<<blocks_for(targets.length, kLanes), dim3(kLanes, kShares), 0, session.stream>>>(
      partials, parts, targets);
  check_launch("add_partials");
}

void sum(Session& session, const SumCall& call) {
  if (call.y.data)
    launch_column_sums(session, MapTwo<Product>{call.x, call.y, call.sums.rows * call.sums.width, {}},
                       Elements(), call.sums);
  else
    launch_column_sums(session, MapOne<Same>{call.x, {}}, Elements(), call.sums);
}

}  // namespace vitrail::cuda
