// Where a command runs: --device and --backend combined into one choice of kernels and device, and --kernels,
// the table that ranks kernels.
#pragma once

#include <string>

#include "cli/options.h"
#include "measure/kernel_table_file.h"
#include "plan/devices.h"

namespace vitrail::cli {

struct DeviceChoice {
  const Backend* backend;
  DeviceInfo info;
};

// Returns the device, with --threads, --isa and --kernels where they apply; throws Error(kDevice) when it is
// not present.
DeviceChoice chosen_device(const Options& options);
// A rank among those of the run, of which --threads may name each.
struct RankNumber {
  int rank = 0, world = 1;
};
// The option --threads of commands whose ranks may have other numbers of them.
OptionSpec rank_threads_option();
// Returns the device of a rank of this host: its share of the cores where --threads does not say how many,
// and the GPU of its number where --device names none.
DeviceChoice chosen_device(const Options& options, HostRank seat, RankNumber rank = {});
// Returns the name of the backend alone; `device` replaces --device.
const char* chosen_backend(const Options& options);
const char* chosen_backend(const Options& options, const std::string& device);

// Returns the table of --kernels for --device, or for `device` in its place.
KernelsFile chosen_kernels(const Options& options);
KernelsFile chosen_kernels(const Options& options, const std::string& device);

}  // namespace vitrail::cli
