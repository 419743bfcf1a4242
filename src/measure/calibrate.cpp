#include "measure/calibrate.h"

#include "backend/registry.h"
#include "base/error.h"
#include "measure/calibrate_steps.h"
#include "measure/device_check.h"
#include "measure/host.h"
#include "plan/devices.h"

namespace vitrail {

namespace {
constexpr std::pair<const char*, Arithmetic> kTypes[] = {
    {"f32", Arithmetic::kExact}, {"bf16", Arithmetic::kBF16}, {"int8", Arithmetic::kInt8}};

}  // namespace

std::vector<GemmSize> calibration_gemms() {
  return {{50, 768, 192}, {197, 2304, 768}, {1576, 1024, 4096}};
}

std::vector<int> Calibration::thread_counts() const {
  if (!device.shares_host_memory) return {1};
  if (!threads.empty()) return threads;
  return device.threads > 1 ? std::vector<int>{1, device.threads} : std::vector<int>{1};
}

std::vector<std::string> Calibration::types() const {
  return dtypes.empty() ? calibration_types(device) : dtypes;
}

int64_t Calibration::measurements() const {
  const size_t steps = budget > 0 ? calibration_steps(device, types(), false).size() : 0;
  const size_t peaks = device.shares_host_memory ? 2 + gemms.size() * std::size(kTypes) : 1;
  return static_cast<int64_t>(thread_counts().size() * (steps + peaks));
}

namespace {
void advance(const Calibration& c, int64_t count) {
  if (c.advance) c.advance(count);
}

void measure_rates(const Calibration& c, int threads, CpuSpec& processor) {
  DeviceInfo part = c.device;
  part.threads = threads;
  const BackendEntry& backend = find_entry(part.backend);
  const DevicePeaks peaks = backend.measure(part, *backend.open(part), "f32", true);
  processor.rates.push_back({threads, peaks.gflops, peaks.gbps});
  advance(c, 2);
  ThreadPool pool(threads);
  for (const auto& [type, arithmetic] : kTypes)
    for (const GemmSize& size : c.gemms) {
      const auto speeds = measure_kernels(size, part, pool, c.rounds, arithmetic);
      if (!speeds.empty())
        processor.gemms.push_back({size.m, size.n, size.k, threads, speeds.front().gflops, type});
      advance(c, 1);
    }
}

// A step that the device cannot run (a type it lacks, too little memory) leaves no points.
void measure_curves(const Calibration& c, int threads, DeviceFile& file) {
  if (c.budget <= 0) return;
  DeviceInfo part = c.device;
  part.threads = c.device.shares_host_memory ? threads : c.device.threads;
  for (const CalibrationStep& step : calibration_steps(part, c.types(), false)) {
    try {
      measure_step(step, part, c.budget, &file.curves);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal || error.kind() == ErrorKind::kCheck) throw;
    }
    advance(c, 1);
  }
}

DeviceFile measure_processor(const Calibration& c) {
  CpuSpec processor{.isa = isa_name(c.device.isa), .cores = c.device.threads};
  for (const int threads : c.thread_counts()) measure_rates(c, threads, processor);
  DeviceFile file;
  file.kind = c.device.backend;
  file.name = name_of(c.device);
  file.memory_bytes = c.device.memory_bytes;
  file.spec = std::move(processor);
  return file;
}
}  // namespace

DeviceFile measure_device(const Calibration& c) {
  DeviceFile file;
  if (c.device.shares_host_memory) {
    file = measure_processor(c);
  } else {
    file = measure_peaks(c.device, *open_device(c.device));
    advance(c, 1);
  }
  for (const int threads : c.thread_counts()) measure_curves(c, threads, file);
  return file;
}

DeviceFile measure_peaks(const DeviceInfo& info, Device& device) {
  const BackendEntry& backend = find_entry(info.backend);
  GpuSpec gpu{.compute = info.compute, .processors = info.processors, .l2_bytes = info.l2_bytes};
  for (const char* type : kGpuTypes) {
    const bool first = gpu.tflops.empty();  // f32, which every GPU has
    try {
      const DevicePeaks peaks = backend.measure(info, device, type, first);
      gpu.tflops[type] = peaks.gflops / 1e3;
      if (first) gpu.copy_gbps = peaks.gbps;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice || first) throw;
    }
  }
  DeviceFile file;
  file.kind = info.backend;
  file.name = info.name;
  file.memory_bytes = info.memory_bytes;
  file.foreign_bytes = device.foreign_bytes();
  file.spec = std::move(gpu);
  return file;
}

PlanTarget measured_target(TargetRequest request, const std::string& backend) {
  request.measure = measure_peaks;
  PlanTarget target = resolve_target(request);
  if (request.file) return target;
  auto found = file_of_device(target.device, all_device_files(request.places));
  if (found && find_entry(backend).names_devices()) target.file = std::move(found);
  return target;
}

}  // namespace vitrail
