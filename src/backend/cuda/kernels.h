// The CUDA backend as the rest of the program sees it: the kernel list and the choice, which are plain C++
// and work on machines without a GPU, and the device itself, which needs the plugin library and a driver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/device.h"
#include "backend/kernel.h"

namespace vitrail {

struct BackendEntry;

const Backend& cuda_backend();
BackendEntry cuda_entry();  // of the registry

// A GPU of this machine; throws Error(kDevice) with the reason when there is none.
DeviceInfo cuda_device(int ordinal = 0);
// A GPU for planning, which this machine need not have. `compute` is 10 x its compute capability.
DeviceInfo planned_cuda_device(std::string name, int compute, int processors = 0);
std::unique_ptr<Device> open_cuda_device(const DeviceInfo& info);
// The version of cuBLASLt, whose algorithms the tables of kernels name by number.
std::string cublas_version();

// The report that `doctor` prints: one line per GPU and the libraries' versions, or why CUDA cannot be used
// here.
struct CudaReport {
  std::string problem;  // empty: usable
  std::vector<std::string> gpus;
  std::string driver, runtime, cublas, plugin;
};
CudaReport cuda_report();

}  // namespace vitrail
