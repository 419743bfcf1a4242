#include "backend/cpu/host/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "tensor/buffer.h"

namespace vitrail {

namespace {
constexpr int64_t kRounds = 200'000;
constexpr int kTries = 40, kTasksPerThread = 8;  // long enough that a core lost for a moment does not show
}  // namespace

double measure_peak_gflops(ThreadPool& pool, IsaLevel level) {
  using Clock = std::chrono::steady_clock;
  const cpu::IsaKernels& isa = cpu::isa_kernels(level);
  const int64_t tasks = int64_t{pool.threads()} * kTasksPerThread;
  const double flops = static_cast<double>(isa.spin_flops) * static_cast<double>(kRounds * tasks);
  std::atomic<float> sink{0};
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Clock::time_point start = Clock::now();
    pool.run(tasks, [&](int64_t, int) { sink.store(isa.spin(kRounds), std::memory_order_relaxed); });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, flops / seconds / 1e9);
  }
  return best;
}

double measure_copy_gbps(ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kBytes = size_t{64} << 20, kPiece = size_t{1} << 20;
  constexpr int kCopies = 8;
  const Buffer from(kBytes, Category::kTransient), to(kBytes, Category::kTransient);
  std::memset(from.data(), 1, kBytes);
  double best = 0;
  for (int attempt = 0; attempt < kCopies; ++attempt) {
    const Clock::time_point start = Clock::now();
    pool.run(kBytes / kPiece, [&](int64_t piece, int) {
      const size_t at = static_cast<size_t>(piece) * kPiece;
      std::memcpy(to.data() + at, from.data() + at, kPiece);
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds / 1e9);
  }
  return best;
}

}  // namespace vitrail
