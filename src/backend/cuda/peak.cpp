#include "backend/cuda/peak.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/cuda/launch.h"
#include "tensor/buffer.h"

namespace vitrail {

namespace {

constexpr size_t kWorkspaceAlignment = 256;
constexpr double kRoundSeconds = 0.02;
constexpr int kRounds = 4, kMostRuns = 40;

// The seconds of one call in the best round, since other work can only slow a round down.
double best_seconds(Device& device, const std::function<void()>& call) {
  const auto timed = [&](int runs) {
    const auto all = [&] {
      for (int i = 0; i < runs; ++i) call();
    };
    return timed_seconds(device, all) / runs;
  };
  timed(1);
  double best = timed(1);
  const int runs = std::clamp(static_cast<int>(kRoundSeconds / best), 1, kMostRuns);
  for (int round = 0; round < kRounds; ++round) best = std::min(best, timed(runs));
  return best;
}

// A type that GEMMs are computed in: its operands, its result, and its cuBLASLt settings.
struct GemmType {
  const char* name;
  DType in, out;
  bool tf32 = false, scaled = false;
};
constexpr GemmType kTypes[] = {{.name = "f32", .in = DType::kF32, .out = DType::kF32},
                               {.name = "tf32", .in = DType::kF32, .out = DType::kF32, .tf32 = true},
                               {.name = "bf16", .in = DType::kBF16, .out = DType::kBF16},
                               {.name = "f16", .in = DType::kF16, .out = DType::kF16},
                               {.name = "fp8", .in = DType::kU8, .out = DType::kBF16, .scaled = true}};

const GemmType& type_named(const std::string& name) {
  for (const GemmType& type : kTypes)
    if (name == type.name) return type;
  throw Error(ErrorKind::kDevice, "there are no GEMMs in " + name + " on a GPU");
}

// The side of square matrices: large enough to reach the peak, small enough for the free memory.
int64_t side_of(const Device& device, const GemmType& type) {
  int64_t side = 8192;
  while (side > 512 && static_cast<size_t>(6 * side * side) * size_of(type.out) > device.free_bytes())
    side /= 2;
  return side;
}

}  // namespace

double measure_cuda_peak_gflops(Device& device, const std::string& name) {
  const GemmType& type = type_named(name);
  const int64_t side = side_of(device, type);
  const auto elems = static_cast<size_t>(side * side), row = static_cast<size_t>(side);
  const size_t in = elems * size_of(type.in), out = elems * size_of(type.out);
  const Buffer memory(kWorkspaceAlignment + cuda::kWorkspaceBytes + 2 * in + out + row * sizeof(float),
                      Category::kScratch, &device);
  const size_t past = reinterpret_cast<uintptr_t>(memory.data()) % kWorkspaceAlignment;
  std::byte* workspace = memory.data() + (past > 0 ? kWorkspaceAlignment - past : 0);
  std::byte* matrices = workspace + cuda::kWorkspaceBytes;
  fill_for_timing(device, matrices, type.in, 2 * elems);
  std::byte* scales = matrices + 2 * in + out;
  const std::vector<float> ones(row, 1.0f);
  device.upload(scales, ones.data(), row * sizeof(float));
  const float* scale = type.scaled ? reinterpret_cast<const float*>(scales) : nullptr;
  const cuda::GemmCall call{.m = side,
                            .n = side,
                            .k = side,
                            .a = {matrices, type.in},
                            .b = {matrices + in, type.in},
                            .d = {matrices + 2 * in, type.out},
                            .a_scales = scale,
                            .b_scales = scale,
                            .tf32 = type.tf32,
                            .b_transposed = true,
                            .workspace = workspace};
  cuda::Session& session = cuda::session_of(device.launch_handle());
  const double seconds = best_seconds(device, [&] { cuda::api().gemms.gemm(session, call); });
  return 2.0 * static_cast<double>(side) * static_cast<double>(elems) / seconds / 1e9;
}

double measure_cuda_copy_gbps(Device& device) {
  constexpr size_t kLeast = size_t{1} << 16, kMost = size_t{1} << 30;
  const size_t bytes = std::clamp(device.free_bytes() / 8 & ~(kLeast - 1), kLeast, kMost);
  const Buffer from(bytes, Category::kScratch, &device), to(bytes, Category::kScratch, &device);
  device.clear(from.data(), bytes);
  const double seconds = best_seconds(device, [&] { device.copy(to.data(), from.data(), bytes); });
  return 2.0 * static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace vitrail
