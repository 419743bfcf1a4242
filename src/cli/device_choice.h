// --device and --backend made one: which kernels run, and where. Used by every command that computes.
#pragma once

#include <optional>

#include "backend/kernel.h"
#include "cli/options.h"

namespace vitrail::cli {

// The number after "cuda:"; nothing for "cpu". Error(kUsage) for anything else.
std::optional<int> parse_cuda(const std::string& device);

struct DeviceChoice {
  const Backend* backend;
  DeviceInfo info;
};

// The device itself, with --threads, --isa and --kernels where they count; Error(kDevice) when it is not
// here.
DeviceChoice chosen_device(const Options& options);
// The backend's name alone; `device` stands in for --device.
const char* chosen_backend(const Options& options);
const char* chosen_backend(const Options& options, const std::string& device);

}  // namespace vitrail::cli
