// Measuring which CPU kernels are fastest for GEMMs of given sizes: every kernel of the list that takes the
// GEMM runs in turns, so that a slow moment hits all of them. Knows no option and no file.
#pragma once

#include <string>
#include <vector>

#include "backend/device_info.h"
#include "backend/kernel_table.h"
#include "base/thread_pool.h"
#include "ops/linear.h"

namespace vitrail {

struct GemmSize {
  int64_t m = 0, n = 0, k = 0;
  bool operator==(const GemmSize&) const = default;
};

// The linears of the zoo's Tiny, Small, Base and Large: 1 and 8 images of 50, 65 and 197 tokens.
std::vector<GemmSize> zoo_gemms();

struct KernelSpeed {
  std::string kernel;
  double gflops = 0;
  bool packs = false;  // wants its weight in a storage order of its own
};

// In the list's order, but a kernel that is clearly faster than the one before it goes ahead: a difference
// within the noise changes nothing.
std::vector<KernelSpeed> ranked(std::vector<KernelSpeed> speeds);

// Ranked; the best of `rounds`, since other work only ever slows a run down. Empty: no kernel of this
// instruction set computes in `arithmetic`.
std::vector<KernelSpeed> measure_kernels(const GemmSize& size, const DeviceInfo& device, ThreadPool& pool,
                                         int64_t rounds, Arithmetic arithmetic = Arithmetic::kExact);

// What of them a table needs: the fastest, and behind a kernel that packs the fastest that does not, which
// serves weights that stay plain.
KernelTable::Row tuned_row(const GemmSize& size, const DeviceInfo& device,
                           const std::vector<KernelSpeed>& speeds);

}  // namespace vitrail
