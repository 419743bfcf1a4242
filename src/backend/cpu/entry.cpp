// The row of the CPU in the registry of backends.
#include "backend/cpu/gemm/onednn.h"
#include "backend/cpu/host/peak.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/launch.h"
#include "backend/registry.h"

namespace vitrail {

namespace {

BackendReport processor_report() {
  const DeviceInfo device = cpu_device();
  return {.problem = {},
          .devices = {strf("%d cores with %s", device.threads, to_string(static_cast<IsaLevel>(device.isa)))},
          .libraries = {},
          .note = "the fast one on processors"};
}

UnsupportedType unsupported_by_processor(const std::string& type, const char* dash) {
  const bool rounded = type == "fp8" || type == "tf32";  // types that the reference backend can round to
  return {strf("%sdtype %s needs %sdevice cuda", dash, type.c_str(), dash),
          strf("%sdtype bf16 or int8 on the CPU; ", dash) +
              (rounded ? strf("%sbackend ref computes it anywhere, slowly", dash)
                       : "weights stored as f16 are read as they are")};
}

// oneDNN is opened only where a table names it.
std::map<std::string, std::string> libraries_of(const KernelTable& table) {
  if (!table.names("onednn tiles")) return {};
  return {{"onednn", cpu::onednn().missing.empty() ? cpu::onednn().version : "missing"}};
}

DevicePeaks measure_processor(const DeviceInfo& device, Device&, const std::string&, bool copying) {
  ThreadPool pool(device.threads);
  return {measure_peak_gflops(pool, static_cast<IsaLevel>(device.isa)),
          copying ? measure_copy_gbps(pool) : 0};
}

}  // namespace

BackendEntry cpu_entry() {
  return {.name = "cpu",
          .kernels = cpu_backend,
          .runs_on = "cpu",
          .numbered = false,
          .on_host = true,
          .is_reference = false,
          .by_isa = true,
          .types = {"f32", "bf16", "int8"},
          .unsupported = unsupported_by_processor,
          .rounds_activations = false,
          .tables = {.key = "processor",
                     .of_sizes = cpu::f32_kernels,
                     .by_isa = true,
                     .of_one_version = true,
                     .shipped = false,
                     .libraries = libraries_of},
          .report = processor_report,
          .find = [](const DeviceRequest& wanted) { return cpu_device(wanted.threads, wanted.isa); },
          .planned =
              [](const PlannedDevice& wanted) {
                return planned_cpu_device(wanted.threads, wanted.isa, wanted.memory_bytes);
              },
          .open = [](const DeviceInfo&) { return open_host_device(); },
          .measure = measure_processor};
}

}  // namespace vitrail
