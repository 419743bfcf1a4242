// What `plan` plans for: this machine, its GPU (--device cuda), or the device of a file (--target), which
// need not be here.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/options.h"
#include "plan/device_file.h"

namespace vitrail::cli {

struct PlanTarget {
  std::optional<DeviceFile> file;  // its speed: of --target, or of this machine's GPU as just measured
  DeviceInfo device;
  size_t available_bytes = 0;  // memory
  size_t foreign_bytes = 0;    // of a GPU: beside the arenas

  bool is_gpu() const { return !device.shares_host_memory; }
};
PlanTarget read_plan_target(const Options& options);

// The file --target means: a path, or the name of one in `places` ("h200").
std::string find_device_file(const std::string& target, const std::vector<std::filesystem::path>& places);

// This machine's GPU as a file: what bench calibrate writes. Takes some tenths of a second.
DeviceFile measure_gpu(int ordinal);

// Whether this processor has the device's instruction set.
bool runs_here(const DeviceInfo& device);

}  // namespace vitrail::cli
