// Measures this machine as a device file: its processor by multiply-adds, copies and GEMMs, a GPU by large
// GEMMs and copies. Knows no option; a callback reports the progress.
#pragma once

#include <functional>
#include <vector>

#include "measure/tuner.h"
#include "plan/target.h"

namespace vitrail {

// Returns a small, a usual and a large GEMM of ViTs.
std::vector<GemmSize> calibration_gemms();

struct Calibration {
  DeviceInfo device;  // the processor with the threads and the instruction set to measure, or a GPU
  std::vector<GemmSize> gemms = calibration_gemms();
  int64_t rounds = 7;
  std::vector<int> threads = {};              // of a processor; none: one, and all of them
  std::vector<std::string> dtypes = {};       // of the curves; none: all that the device has
  double budget = 0.5;                        // seconds for each step of the curves; 0: no curves
  std::function<void(int64_t)> advance = {};  // the argument counts measurements since the last call

  int64_t measurements() const;  // their total number
  std::vector<int> thread_counts() const;
  std::vector<std::string> types() const;
};
// Measures the processor or the GPU; curves take minutes, the rest seconds.
DeviceFile measure_device(const Calibration& calibration);

// Measures the peaks of an opened GPU alone, which takes some tenths of a second.
DeviceFile measure_peaks(const DeviceInfo& info, Device& device);
// Returns a plan's target with its speed: of the file that was asked for, else of the one that describes the
// device, where `backend` is what it was measured with, else a GPU's peaks.
PlanTarget measured_target(TargetRequest request, const std::string& backend);

}  // namespace vitrail
