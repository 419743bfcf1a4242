// Measures which CPU kernels are fastest for GEMMs of given sizes: all kernels that accept the GEMM run in
// alternation, so that a slow moment affects all of them. Knows no option and no file.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

// Returns the linears of the zoo's Tiny, Small, Base and Large: 1 and 8 images of 50, 65 and 197 tokens.
std::vector<GemmSize> zoo_gemms();

struct KernelSpeed {
  std::string kernel;
  double gflops = 0;
  bool packs = false;  // its weight has a storage order of its own
};

// Orders kernels as the list does, but moves one ahead that is clearly faster than the one before it: a
// difference within the noise changes nothing.
std::vector<KernelSpeed> ranked(std::vector<KernelSpeed> speeds);

// Returns the kernels ranked by the best of `rounds`, since other work only ever slows a run down. Empty: no
// kernel of this instruction set computes in `arithmetic`.
std::vector<KernelSpeed> measure_kernels(const GemmSize& size, const DeviceInfo& device, ThreadPool& pool,
                                         int64_t rounds, Arithmetic arithmetic = Arithmetic::kExact);

// Returns what a table needs: the fastest kernel, and behind one that packs the fastest that does not, for
// weights that stay plain.
KernelTable::Row tuned_row(const GemmSize& size, const DeviceInfo& device,
                           const std::vector<KernelSpeed>& speeds);

// Parses "197x2304x768" as m x n x k; throws Error(kUsage) for any other text.
GemmSize parse_gemm(const std::string& text);
std::string size_text(const GemmSize& size);  // "197x2304x768"
// Returns what was measured of a GEMM, for scripts and for people.
nlohmann::ordered_json row_json(const GemmSize& size, const std::vector<KernelSpeed>& speeds);
std::vector<std::string> row_cells(const GemmSize& size, const std::vector<KernelSpeed>& speeds);

}  // namespace vitrail
