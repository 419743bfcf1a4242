// The row of CUDA in the registry of backends.
#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "backend/registry.h"
#include "base/values.h"

namespace vitrail {

namespace {

BackendReport gpu_report() {
  const CudaReport found = cuda_report();
  const std::string with = strf(" (driver for %s, built with CUDA %s, cuBLASLt %s)", found.driver.c_str(),
                                found.runtime.c_str(), found.cublas.c_str());
  return {.problem = found.problem,
          .devices = found.gpus,
          .libraries = {{"driver", found.driver},
                        {"runtime", found.runtime},
                        {"cublas", found.cublas},
                        {"plugin", found.plugin}},
          .note = found.problem.empty() ? join(found.gpus, "; ") + with : found.problem};
}

UnsupportedType unsupported_by_gpu(const std::string& type, const char* dash) {
  return {type + " runs on the CPU alone so far", strf("%sdtype bf16 on a GPU", dash)};
}

DeviceInfo planned_gpu(const PlannedDevice& wanted) {
  DeviceInfo info = planned_cuda_device(wanted.name, wanted.compute, wanted.processors);
  info.memory_bytes = wanted.memory_bytes;
  info.l2_bytes = wanted.l2_bytes;
  return info;
}

DevicePeaks measure_gpu(const DeviceInfo&, Device& device, const std::string& type, bool copying) {
  return {measure_cuda_peak_gflops(device, type), copying ? measure_cuda_copy_gbps(device) : 0};
}

}  // namespace

BackendEntry cuda_entry() {
  return {.name = "cuda",
          .kernels = cuda_backend,
          .runs_on = "cuda",
          .numbered = true,
          .on_host = false,
          .is_reference = false,
          .by_isa = false,
          .types = {"f32", "tf32", "bf16", "f16", "fp8"},
          .unsupported = unsupported_by_gpu,
          .rounds_activations = true,
          .tables = {.key = "card",
                     .of_sizes = nullptr,
                     .by_isa = false,
                     .of_one_version = false,
                     .shipped = true,
                     .libraries =
                         [](const KernelTable&) {
                           return std::map<std::string, std::string>{{"cublaslt", cublas_version()}};
                         }},
          .report = gpu_report,
          .find = [](const DeviceRequest& wanted) { return cuda_device(wanted.ordinal); },
          .planned = planned_gpu,
          .open = open_cuda_device,
          .measure = measure_gpu};
}

}  // namespace vitrail
