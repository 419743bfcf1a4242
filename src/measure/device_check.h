// Device files against the machine at hand: which of them describe it, and how far one is off. Knows no
// option; a callback reports the progress.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/device_file.h"
#include "train/step_plan.h"

namespace vitrail {

// Returns the names of the device files that describe this processor or a GPU of this machine.
std::vector<std::string> files_of_this_machine(const std::vector<std::string>& paths);
// Returns the first of them that describes a device and has curves; nothing where none does.
std::optional<DeviceFile> file_of_device(const DeviceInfo& device, const std::vector<std::string>& paths);
// Returns the path of the file that is named, by its name in `places` or its path, or of the first there that
// describes the device and has curves; nothing where none does. Throws Error(kData) for a named one that does
// not.
std::optional<std::string> speed_path(const DeviceInfo& device, const std::string& named,
                                      const std::vector<std::filesystem::path>& places);
// Returns that file.
std::optional<DeviceFile> speed_of(const DeviceInfo& device, const std::string& named,
                                   const std::vector<std::filesystem::path>& places);
// Returns what predicts the seconds of a run's updates by that file; nothing where there is none.
std::function<double(const StepPlan& plan, int64_t accumulation)> update_predictor(
    const DeviceInfo& device, const std::string& named, const std::vector<std::filesystem::path>& places);
// Returns why a file does not describe the device; empty: it does.
std::string mismatch(const DeviceFile& file, const DeviceInfo& device);

struct CheckedStep {
  std::string text;
  double predicted = 0, seconds = 0;  // `seconds`: measured, the median
  double error() const { return predicted / seconds - 1; }
};
// Runs some short programs and compares them with what a file predicts, which is named by its name in
// `places` or its path. Throws Error(kData) for one of another device, before anything is measured.
std::vector<CheckedStep> check_device_file(const std::string& named,
                                           const std::vector<std::filesystem::path>& places,
                                           const DeviceInfo& device, std::vector<std::string> dtypes,
                                           double budget, const std::function<void(int64_t)>& advance);

nlohmann::ordered_json to_json(const std::vector<CheckedStep>& steps);
std::string to_text(const std::vector<CheckedStep>& steps);

}  // namespace vitrail
