// Short ViTs of every width, run node by node on a device as a whole program runs them: the points of the
// device file's curves. The same runs, whole, say how far a device file is off. Knows no option; a callback
// reports the progress.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/device_file.h"

namespace vitrail {

// A program to measure: a ViT of the zoo with few blocks.
struct CalibrationStep {
  std::string arch;
  int64_t image = 224, depth = 2, batch = 1;
  bool training = false;
  std::string dtype = "f32";

  std::string text() const;  // "vit_base_patch16_224, 2 blocks, batch 8, training, f32"
};

// Returns the steps for a device: each type by itself, from one image to as many as fill the device. A short
// list has about one in eight of them.
std::vector<CalibrationStep> calibration_steps(const DeviceInfo& device,
                                               const std::vector<std::string>& dtypes, bool brief);
// Returns the types in which the device computes here.
std::vector<std::string> calibration_types(const DeviceInfo& device);

struct StepMeasurement {
  double seconds = 0;    // of a whole run: the median
  double predicted = 0;  // by the device file given; 0: none
};
// Measures a step for about `budget` seconds, and adds the points of its nodes to `curves` where given, on a
// processor one for what the run takes beside them: they add up to the whole run.
StepMeasurement measure_step(const CalibrationStep& step, const DeviceInfo& device, double budget,
                             CostCurves* curves, const DeviceFile* file = nullptr);

}  // namespace vitrail
