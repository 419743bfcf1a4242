// Softmax over rows and its gradient: one block per row.
#include "backend/cuda/device/norms.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) softmax_rows(Elements x, Elements y, int64_t width) {
  const int64_t start = blockIdx.x * width;
  float top = -INFINITY, total = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) top = fmaxf(top, x.get(start + i));
  top = block_max<kThreads>(top);
  for (int64_t i = threadIdx.x; i < width; i += kThreads) total += expf(x.get(start + i) - top);
  total = block_sum<kThreads>(total);
  for (int64_t i = threadIdx.x; i < width; i += kThreads)
    y.put(start + i, expf(x.get(start + i) - top) / total);
}

__global__ void __launch_bounds__(kThreads)
    softmax_grad_rows(Elements y, Elements dy, Elements dx, int64_t width) {
  const int64_t start = blockIdx.x * width;
  float mean = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) mean += y.get(start + i) * dy.get(start + i);
  mean = block_sum<kThreads>(mean);
  for (int64_t i = threadIdx.x; i < width; i += kThreads)
    dx.put(start + i, y.get(start + i) * (dy.get(start + i) - mean));
}

}  // namespace

void softmax(Session& session, const SoftmaxCall& call) {
  softmax_rows<<<static_cast<unsigned>(call.rows), kThreads, 0, session.stream>>>(call.x, call.y, call.width);
  check_launch("softmax");
}

void softmax_grad(Session& session, const SoftmaxCall& call) {
  softmax_grad_rows<<<static_cast<unsigned>(call.rows), kThreads, 0, session.stream>>>(call.y, call.dy,
                                                                                       call.dx, call.width);
  check_launch("softmax_grad");
}

}  // namespace vitrail::cuda
