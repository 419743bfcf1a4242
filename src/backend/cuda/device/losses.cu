// The losses and their gradients, one block per image: its logits are read again in every pass, from cache.
#include <algorithm>

#include "backend/cuda/device/activate.cuh"
#include "backend/cuda/device/block.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

// The derivative of softplus, exact to the last bits on both sides of 0.
__device__ float softplus_slope(float x) {
  const float tail = expf(-fabsf(x));
  return (x >= 0 ? 1.0f : tail) / (1.0f + tail);
}

// Combines term(i) over an image's classes; i counts through all images.
template <typename Join, typename Term>
__device__ float over_classes(const LossCall& call, float start, Join join, Term term) {
  const int64_t begin = blockIdx.x * call.classes, end = begin + call.classes;
  float total = start;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) total = join(total, term(i));
  return block_join(total, join);
}

struct Softmax {
  float top, total;  // the largest logit, and the sum of exp(x - top)
};
__device__ Softmax softmax_of(const LossCall& call, const Elements& x) {
  const float top = over_classes(call, -INFINITY, Max{}, [&](int64_t i) { return x.get(i); });
  const float total = over_classes(call, 0.0f, Sum{}, [&](int64_t i) { return expf(x.get(i) - top); });
  return {top, total};
}

__global__ void loss_kernel(const __grid_constant__ LossCall call) {
  const Elements x = call.logits, t = call.targets;
  float loss;
  if (call.softmax) {
    const Softmax softmax = softmax_of(call, x);
    const float log_total = logf(softmax.total);
    loss = over_classes(call, 0.0f, Sum{}, [&](int64_t i) {
      const float target = t.get(i), surprise = log_total - (x.get(i) - softmax.top);
      return target * (call.less_entropy && target > 0 ? surprise + logf(target) : surprise);
    });
  } else {
    loss = call.share * over_classes(call, 0.0f, Sum{},
                                     [&](int64_t i) { return softplus(x.get(i)) - t.get(i) * x.get(i); });
  }
  if (threadIdx.x == 0) Elements(call.losses).put(blockIdx.x, loss);
}

__global__ void loss_grad_kernel(const __grid_constant__ LossCall call) {
  const Elements x = call.logits, t = call.targets, dx = call.dlogits;
  const float dloss = Elements(call.losses).get(blockIdx.x);
  const int64_t begin = blockIdx.x * call.classes, end = begin + call.classes;
  if (call.softmax) {
    const Softmax softmax = softmax_of(call, x);
    const float mass = over_classes(call, 0.0f, Sum{}, [&](int64_t i) { return t.get(i); });
    const float share = mass / softmax.total;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      dx.put(i, dloss * (share * expf(x.get(i) - softmax.top) - t.get(i)));
    return;
  }
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    dx.put(i, dloss * call.share * (softplus_slope(x.get(i)) - t.get(i)));
}

__global__ void loss_sum_kernel(const __grid_constant__ LossSumCall call) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= call.images) return;
  const float weight = Elements(call.weights).get(i);
  if (weight > 0)
    call.sums[i] += static_cast<double>(Elements(call.losses).get(i)) * static_cast<double>(weight);
}

void launch(Session& session, void (*kernel)(LossCall), const LossCall& call, const char* name) {
  if (call.images == 0) return;
  const int64_t threads = std::clamp<int64_t>((call.classes + 31) / 32 * 32, 32, 256);
  kernel<<<static_cast<unsigned>(call.images), static_cast<unsigned>(threads), 0, session.stream>>>(call);
  check_launch(name);
}

void forward(Session& session, const LossCall& call) {
  launch(session, loss_kernel, call, "loss");
}
void backward(Session& session, const LossCall& call) {
  launch(session, loss_grad_kernel, call, "loss_grad");
}

void sum(Session& session, const LossSumCall& call) {
  if (call.images == 0) return;
  constexpr int64_t kThreads = 128;
  const auto blocks = static_cast<unsigned>((call.images + kThreads - 1) / kThreads);
  loss_sum_kernel<<<blocks, kThreads, 0, session.stream>>>(call);
  check_launch("loss_sum");
}

}  // namespace

LossesApi losses_api() {
  return {.forward = forward, .backward = backward, .sum = sum};
}

}  // namespace vitrail::cuda
