#include "backend/cpu/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "backend/cpu/isa/peak.h"

namespace vitrail {

namespace {
using Burst = float (*)(int64_t rounds);

Burst burst_of(IsaLevel level) {
  switch (level) {
    case IsaLevel::kAvx512:
      return avx512::fma_burst;
    case IsaLevel::kAvx2:
      return avx2::fma_burst;
    case IsaLevel::kBaseline:
      break;
  }
  return baseline::fma_burst;
}

constexpr int64_t kRounds = 200'000;
constexpr int kTries = 8, kTasksPerThread = 8;
}  // namespace

double measure_peak_gflops(ThreadPool& pool, IsaLevel level) {
  using Clock = std::chrono::steady_clock;
  const Burst burst = burst_of(level);
  const int64_t tasks = int64_t{pool.threads()} * kTasksPerThread;
  const double flops = 2.0 * kPeakChains * isa_kernels(level).lanes * static_cast<double>(kRounds * tasks);
  std::atomic<float> sink{0};
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const Clock::time_point start = Clock::now();
    pool.run(tasks, [&](int64_t, int) { sink.store(burst(kRounds), std::memory_order_relaxed); });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, flops / seconds / 1e9);
  }
  return best;
}

}  // namespace vitrail
