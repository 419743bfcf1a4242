// What is planned for: this processor, a GPU, or the device of a file, which need not be here. Knows no
// option and measures nothing.
#pragma once

#include <filesystem>
#include <optional>

#include "plan/device_file.h"

namespace vitrail {

struct PlanTarget {
  std::optional<DeviceFile> file;  // its speed, where it was measured
  DeviceInfo device;
  size_t available_bytes = 0;  // memory
  size_t foreign_bytes = 0;    // of a GPU: beside the arenas

  bool is_gpu() const { return !device.shares_host_memory; }
};

// The device of a file with so many threads (0: all of its cores). Error(kUsage) where `isa` or `threads` are
// not what was measured.
PlanTarget file_target(DeviceFile file, int threads, const std::string& isa);
// This processor; any instruction set that the build has.
PlanTarget processor_target(int threads, const std::string& isa);

// The file a target's name means: a path, or the name of one in `places` ("h200").
std::string find_device_file(const std::string& target, const std::vector<std::filesystem::path>& places);

}  // namespace vitrail
