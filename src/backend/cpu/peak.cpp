#include "backend/cpu/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace vitrail {

namespace {
constexpr int64_t kRounds = 200'000;
constexpr int kTries = 40, kTasksPerThread = 8;  // long enough that a core lost for a moment does not show
}  // namespace

double measure_peak_gflops(ThreadPool& pool, IsaLevel level) {
  using Clock = std::chrono::steady_clock;
  const IsaKernels& isa = isa_kernels(level);
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

}  // namespace vitrail
