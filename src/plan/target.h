// The device that is planned for: this processor, a GPU, or the device of a file, which need not be present.
// Knows no option and measures nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "plan/device_file.h"

namespace vitrail {

struct PlanTarget {
  std::optional<DeviceFile> file;  // its speed, where it was measured
  bool named = false;              // it plans by that file alone: its device need not be here
  DeviceInfo device;
  size_t available_bytes = 0;  // memory
  size_t foreign_bytes = 0;    // held on a GPU beside the arenas
};

// Returns the device of a file with so many threads (0: all of its cores). Throws Error(kUsage) where `isa`
// or `threads` were not measured.
PlanTarget file_target(DeviceFile file, int threads, const std::string& isa);

// Says how a plan's target was asked for: by a file, or as a device of this machine.
struct TargetRequest {
  std::optional<std::string> file = {};  // its path, or its name in `places`; nothing: `device`
  std::vector<std::filesystem::path> places = {};
  std::string device = "cpu";  // "cuda:1"
  int threads = 0;
  std::string isa = {};  // any instruction set of the build
  // Measures a device beside the host while it is open; none: its speed stays unknown.
  std::function<DeviceFile(const DeviceInfo&, Device&)> measure = {};
};
// Returns the target, with the memory that is free now where it is a device of this machine. Throws
// Error(kData) for a file that cannot be found or read, Error(kDevice) for a device that is not here.
PlanTarget resolve_target(const TargetRequest& request);

// Returns the device file that an option names: a path, or the name of a file in `places` ("h200").
std::string find_device_file(const std::string& name, const std::vector<std::filesystem::path>& places,
                             const std::string& option = "--target");

// Returns every device file in these places, by name; the first place wins.
std::vector<std::string> all_device_files(const std::vector<std::filesystem::path>& places);
// Returns those that a text names: "all", or "t4,h200".
std::vector<std::string> named_device_files(const std::string& names,
                                            const std::vector<std::filesystem::path>& places);

}  // namespace vitrail
