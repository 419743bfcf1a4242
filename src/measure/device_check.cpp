#include "measure/device_check.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/error.h"
#include "base/timing.h"
#include "measure/calibrate_steps.h"
#include "measure/host.h"
#include "plan/devices.h"
#include "plan/target.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

std::string mismatch(const DeviceFile& file, const DeviceInfo& device) {
  const std::string here = name_of(device);
  if (file.kind != device.backend)
    return strf("it is of a %s, and this is a %s", file.kind.c_str(), device.backend.c_str());
  if (file.name != here) return strf("it is of %s, and this is %s", file.name.c_str(), here.c_str());
  return file.mismatch(device, read_machine().usable);
}

namespace {
// Calls `use` with each file that can be read; a damaged one describes nothing.
template <typename Use>
void for_each_file(const std::vector<std::string>& paths, const Use& use) {
  for (const std::string& path : paths) {
    std::optional<DeviceFile> file;
    try {
      file = read_device_file(path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData) throw;
      continue;
    }
    use(path, std::move(*file));
  }
}
}  // namespace

std::vector<std::string> files_of_this_machine(const std::vector<std::string>& paths) {
  std::vector<DeviceInfo> devices;
  for (const BackendEntry& backend : backend_registry())
    for (int i = 0; backend.names_devices() && i < static_cast<int>(backend.report().devices.size()); ++i)
      devices.push_back(backend.find({.ordinal = i}));
  std::vector<std::string> names;
  for_each_file(paths, [&](const std::string& path, const DeviceFile& file) {
    if (std::any_of(devices.begin(), devices.end(),
                    [&](const DeviceInfo& device) { return mismatch(file, device).empty(); }))
      names.push_back(std::filesystem::path(path).stem().string());
  });
  return names;
}

namespace {
// Returns the path of the first file that describes the device and has curves; empty: none does.
std::string path_of_device(const DeviceInfo& device, const std::vector<std::string>& paths) {
  std::string found;
  for_each_file(paths, [&](const std::string& path, const DeviceFile& file) {
    if (found.empty() && (file.like || !file.curves.empty()) && mismatch(file, device).empty()) found = path;
  });
  return found;
}
}  // namespace

std::optional<DeviceFile> file_of_device(const DeviceInfo& device, const std::vector<std::string>& paths) {
  const std::string path = path_of_device(device, paths);
  return path.empty() ? std::nullopt : std::optional(read_device_file(path));
}

namespace {
// Returns the path of the file that an option names.
std::string matching_path(const std::string& named, const std::vector<std::filesystem::path>& places,
                          const DeviceInfo& device, const char* option) {
  std::string path = find_device_file(named, places, option);
  if (const std::string why = mismatch(read_device_file(path), device); !why.empty())
    throw Error(ErrorKind::kData, strf("%s does not describe this machine: %s", path.c_str(), why.c_str()),
                "vitrail bench calibrate --out FILE makes one that does");
  return path;
}
}  // namespace

std::optional<std::string> speed_path(const DeviceInfo& device, const std::string& named,
                                      const std::vector<std::filesystem::path>& places) {
  std::string path = named.empty() ? path_of_device(device, all_device_files(places))
                                   : matching_path(named, places, device, "--target");
  return path.empty() ? std::nullopt : std::optional(std::move(path));
}

std::optional<DeviceFile> speed_of(const DeviceInfo& device, const std::string& named,
                                   const std::vector<std::filesystem::path>& places) {
  const std::optional<std::string> path = speed_path(device, named, places);
  return path ? std::optional(read_device_file(*path)) : std::nullopt;
}

std::function<double(const StepPlan&, int64_t)> update_predictor(
    const DeviceInfo& device, const std::string& named, const std::vector<std::filesystem::path>& places) {
  const std::optional<DeviceFile> file = speed_of(device, named, places);
  if (!file) return {};
  return [known = *file](const StepPlan& plan, int64_t accumulation) {
    return plan.update_seconds(accumulation, known);
  };
}

std::vector<CheckedStep> check_device_file(const std::string& named,
                                           const std::vector<std::filesystem::path>& places,
                                           const DeviceInfo& device, std::vector<std::string> dtypes,
                                           double budget, const std::function<void(int64_t)>& advance) {
  const DeviceFile file = read_device_file(matching_path(named, places, device, "--check"));
  if (dtypes.empty()) dtypes = {"f32"};
  std::vector<CheckedStep> checked;
  for (const CalibrationStep& step : calibration_steps(device, dtypes, true)) {
    const StepMeasurement measured = measure_step(step, device, budget, nullptr, &file);
    checked.push_back({step.text(), measured.predicted, measured.seconds});
    if (advance) advance(1);
  }
  return checked;
}

namespace {
Spread errors_of(const std::vector<CheckedStep>& steps) {
  std::vector<double> errors;
  errors.reserve(steps.size());
  for (const CheckedStep& step : steps) errors.push_back(std::abs(step.error()));
  return spread_of(errors);
}
}  // namespace

nlohmann::ordered_json to_json(const std::vector<CheckedStep>& steps) {
  const Spread errors = errors_of(steps);
  nlohmann::ordered_json json = {{"median_error", errors.median}, {"worst_error", errors.max}};
  for (const CheckedStep& step : steps)
    json["steps"].push_back({{"step", step.text},
                             {"predicted_s", step.predicted},
                             {"measured_s", step.seconds},
                             {"error", step.error()}});
  return json;
}

std::string to_text(const std::vector<CheckedStep>& steps) {
  Table table({{"step"}, {"predicted", Align::kRight}, {"measured", Align::kRight}, {"off", Align::kRight}});
  for (const CheckedStep& step : steps)
    table.row({step.text, format_seconds(step.predicted), format_seconds(step.seconds),
               strf("%+.1f %%", 100 * step.error())});
  const Spread errors = errors_of(steps);
  return table.text() + strf("\nThe file is off by %.1f %% in the median, by %.1f %% at worst.\n",
                             100 * errors.median, 100 * errors.max);
}

}  // namespace vitrail
