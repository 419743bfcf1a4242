// This machine measured as a device file: its processor by multiply-adds, copies and GEMMs, a GPU by large
// GEMMs and copies. Knows no option; a callback hears of the progress.
#pragma once

#include <functional>
#include <vector>

#include "measure/tuner.h"
#include "plan/target.h"

namespace vitrail {

// A small, a usual and a large GEMM of ViTs.
std::vector<GemmSize> calibration_gemms();

struct Calibration {
  DeviceInfo device;  // the processor with the threads and the instruction set to measure
  std::vector<GemmSize> gemms = calibration_gemms();
  int64_t rounds = 7;
  std::function<void(int64_t)> advance = {};  // by so many measurements

  int64_t measurements() const;  // all of them
};
DeviceFile measure_processor(const Calibration& calibration);

// This machine's GPU. Takes some tenths of a second.
DeviceFile measure_gpu(int ordinal);
// The same as what is planned for: free memory counts, not all that the GPU has.
PlanTarget gpu_target(int ordinal);

}  // namespace vitrail
