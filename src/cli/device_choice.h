// --device and --backend made one: which kernels run, and where; and --kernels, the table that ranks them.
#pragma once

#include "cli/options.h"
#include "measure/kernel_table_file.h"
#include "plan/devices.h"

namespace vitrail::cli {

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

// What --kernels says for --device, or for `device` in its place.
KernelsFile chosen_kernels(const Options& options);
KernelsFile chosen_kernels(const Options& options, const std::string& device);

}  // namespace vitrail::cli
