// Load, memory, temperature and power of the GPUs of this host while something runs on them, as the driver's
// management library tells; nothing where there is none. Uses no CUDA and no context.
#pragma once

#include <chrono>
#include <vector>

#include "measure/study/case_result.h"

namespace vitrail {

class GpuReadings {
 public:
  GpuReadings();

  bool usable() const { return !gpus_.empty(); }
  // Forgets what was read.
  void start();
  // Reads all GPUs, unless that was done a moment ago.
  void read();
  // Returns what was read since start().
  std::vector<GpuReading> result() const;

 private:
  using Gpu = struct NvmlDevice*;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Use {
    unsigned gpu, memory;
  };
  struct One {
    Gpu handle = nullptr;
    GpuReading reading = {};
    double load_sum = 0, watt_sum = 0;
    int loads = 0, powers = 0;
  };
  void read_one(One& one);

  std::vector<One> gpus_;
  std::chrono::steady_clock::time_point last_ = {};
  int (*memory_)(Gpu, Memory*) = nullptr;
  int (*use_)(Gpu, Use*) = nullptr;
  int (*temperature_)(Gpu, int, unsigned*) = nullptr;
  int (*power_)(Gpu, unsigned*) = nullptr;  // in milliwatts
};

}  // namespace vitrail
