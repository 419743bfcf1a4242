#include "backend/cuda/peak.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/cuda/plugin.h"
#include "base/rng.h"
#include "tensor/buffer.h"

namespace vitrail {

namespace {

constexpr size_t kWorkspaceAlignment = 256;
constexpr double kRoundSeconds = 0.02;
constexpr int kRounds = 4, kMostRuns = 40;

// Seconds of one call: the best round, since other work only ever slows one down.
double best_seconds(Device& device, const std::function<void()>& call) {
  const auto timed = [&](int runs) {
    device.mark(0);
    for (int i = 0; i < runs; ++i) call();
    device.mark(1);
    return device.seconds_between(0, 1) / runs;
  };
  timed(1);
  double best = timed(1);
  const int runs = std::clamp(static_cast<int>(kRoundSeconds / best), 1, kMostRuns);
  for (int round = 0; round < kRounds; ++round) best = std::min(best, timed(runs));
  return best;
}

// Large enough to reach the peak, small enough for what is free.
int64_t side_of(const Device& device, DType dtype) {
  int64_t side = 8192;
  while (side > 512 && static_cast<size_t>(6 * side * side) * size_of(dtype) > device.free_bytes()) side /= 2;
  return side;
}

}  // namespace

void fill_for_timing(Device& device, std::byte* target, DType dtype, size_t elems) {
  constexpr size_t kDrawn = size_t{1} << 18;
  std::vector<float> values(std::min(elems, kDrawn));
  for (size_t i = 0; i < values.size(); ++i) values[i] = counter_uniform(name_key("peak"), i);
  std::vector<std::byte> drawn(values.size() * size_of(dtype));
  convert_floats(values.data(), DType::kF32, drawn.data(), dtype, values.size());
  device.upload(target, drawn.data(), drawn.size());
  const size_t bytes = elems * size_of(dtype);
  for (size_t done = drawn.size(); done < bytes; done *= 2)
    device.copy(target + done, target, std::min(done, bytes - done));
}

double measure_cuda_peak_gflops(Device& device, DType dtype) {
  auto& session = *static_cast<cuda::Session*>(device.stream());
  const cuda::ProductsApi& products = cuda::api().products;
  const int64_t side = side_of(device, dtype);
  const auto elems = static_cast<size_t>(side * side);
  const size_t matrix = elems * size_of(dtype);
  const Buffer memory(kWorkspaceAlignment + cuda::kWorkspaceBytes + 3 * matrix, Category::kScratch, &device);
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) % kWorkspaceAlignment;
  std::byte* workspace = memory.data() + (past > 0 ? kWorkspaceAlignment - past : 0);
  std::byte* matrices = workspace + cuda::kWorkspaceBytes;
  fill_for_timing(device, matrices, dtype, 2 * elems);
  cuda::GemmCall call{.m = side,
                      .n = side,
                      .k = side,
                      .a = {matrices, dtype},
                      .b = {matrices + matrix, dtype},
                      .d = {matrices + 2 * matrix, dtype},
                      .b_transposed = true,
                      .workspace = workspace};
  const double seconds = best_seconds(device, [&] { products.gemm(session, call); });
  return 2.0 * static_cast<double>(side) * static_cast<double>(elems) / seconds / 1e9;
}

double measure_cuda_copy_gbps(Device& device) {
  const size_t bytes = std::min(size_t{1} << 30, device.free_bytes() / 8 & ~size_t{0xFFFF});
  const Buffer from(bytes, Category::kScratch, &device), to(bytes, Category::kScratch, &device);
  device.clear(from.data(), bytes);
  const double seconds = best_seconds(device, [&] { device.copy(to.data(), from.data(), bytes); });
  return 2.0 * static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace vitrail
