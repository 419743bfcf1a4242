// A device as a file (configs/devices/*.json): what it is and how fast it was measured to be, so that a step
// can be planned and its time estimated on a machine that lacks it. Written by bench calibrate, read by plan
// --target. Of processors so far.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_info.h"
#include "cli/options.h"
#include "graph/program.h"

namespace vitrail::cli {

struct DeviceFile {
  struct Rate {
    int threads = 1;
    double fma_gflops = 0;  // multiply-adds in registers
    double copy_gbps = 0;   // bytes read and written by a copy between memories, each counted
  };
  struct Product {
    int64_t m = 0, n = 0, k = 0;
    int threads = 1;
    double gflops = 0;
  };

  std::string name, isa;
  int cores = 0;
  uint64_t memory_bytes = 0;
  std::vector<Rate> rates;  // by threads, ascending; one at least
  std::vector<Product> products;

  // Of so many threads: those measured, or those of the nearest number in proportion.
  Rate rate(int threads) const;
  // Median share of the multiply-add peak that products of matrices reached.
  double product_share() const;
  DeviceInfo info(int threads) const;  // 0: all cores; for planning alone
};

// Error(kData) for a file that is none.
DeviceFile read_device_file(const std::string& path);
nlohmann::ordered_json to_json(const DeviceFile& device);

// Seconds of one run: each node by the slower of its arithmetic and its memory traffic.
double estimate_seconds(const Program& program, const DeviceFile& device, int threads);

// What `plan` plans for: this machine, or the device of --target.
struct PlanTarget {
  std::optional<DeviceFile> file;
  DeviceInfo device;
  size_t available_bytes = 0;  // memory
};
PlanTarget read_plan_target(const Options& options);
// Whether this processor has the device's instruction set.
bool runs_here(const DeviceInfo& device);

}  // namespace vitrail::cli
