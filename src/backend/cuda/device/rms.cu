// RMSNorm and its gradient: one block per row, of any width, and for the gradient of the weight one block per
// few columns.
#include "backend/cuda/device/norms.cuh"

namespace vitrail::cuda {

namespace {

constexpr int kBlock = 256;

__device__ float inverse_root(const Elements& x, int64_t start, int64_t width, float eps) {
  float squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += kBlock) squares += x.get(start + i) * x.get(start + i);
  return rsqrtf(block_sum<kBlock>(squares) / static_cast<float>(width) + eps);
}

__global__ void __launch_bounds__(kBlock) rms_kernel(const __grid_constant__ RmsCall call) {
  const Elements x = call.x, y = call.y, weight = call.weight;
  const int64_t start = blockIdx.x * call.width;
  const float inverse = inverse_root(x, start, call.width, call.eps);
  for (int64_t i = threadIdx.x; i < call.width; i += kBlock)
    y.put(start + i, x.get(start + i) * inverse * weight.get(i));
}

__global__ void __launch_bounds__(kBlock) rms_grad_kernel(const __grid_constant__ RmsCall call) {
  const Elements x = call.x, dy = call.dy, dx = call.dx, weight = call.weight;
  const int64_t start = blockIdx.x * call.width;
  const float inverse = inverse_root(x, start, call.width, call.eps);
  float sum = 0;  // of the gradient of the normalised row times the row
  for (int64_t i = threadIdx.x; i < call.width; i += kBlock)
    sum += dy.get(start + i) * weight.get(i) * x.get(start + i) * inverse;
  const float mean = block_sum<kBlock>(sum) / static_cast<float>(call.width);
  for (int64_t i = threadIdx.x; i < call.width; i += kBlock)
    dx.put(start + i, inverse * (dy.get(start + i) * weight.get(i) - x.get(start + i) * inverse * mean));
  if (threadIdx.x == 0) call.inverse[blockIdx.x] = inverse;
}

// The gradient of the weight: each row of lanes sums every kLines-th row.
constexpr int kColumns = 32, kLines = 32;
__global__ void __launch_bounds__(kColumns* kLines) rms_dweight_kernel(const __grid_constant__ RmsCall call) {
  const Elements x = call.x, dy = call.dy;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0;
  if (column < call.width)
    for (int64_t row = threadIdx.y; row < call.rows; row += kLines)
      sum += dy.get(row * call.width + column) * x.get(row * call.width + column) * call.inverse[row];
  __shared__ float lines[kLines][kColumns];
  lines[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= call.width) return;
  float total = 0;
  for (int line = 0; line < kLines; ++line) total += lines[line][threadIdx.x];
  Elements(call.dweight).put(column, total);
}

}  // namespace

void rms(Session& session, const RmsCall& call) {
  rms_kernel<<<static_cast<unsigned>(call.rows), kBlock, 0, session.stream>>>(call);
  check_launch("rms");
}

void rms_grad(Session& session, const RmsCall& call) {
  rms_grad_kernel<<<static_cast<unsigned>(call.rows), kBlock, 0, session.stream>>>(call);
  if (call.dweight.data)
    rms_dweight_kernel<<<blocks_for(call.width, kColumns), dim3(kColumns, kLines), 0, session.stream>>>(call);
  check_launch("rms_grad");
}

}  // namespace vitrail::cuda
