#include "measure/calibrate.h"

#include "backend/cpu/host/peak.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "base/error.h"
#include "measure/calibrate_steps.h"
#include "measure/host.h"

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

void measure_rates(const Calibration& c, int threads, DeviceFile& file) {
  ThreadPool pool(threads);
  DeviceInfo part = c.device;
  part.threads = threads;
  const auto level = static_cast<IsaLevel>(c.device.isa);
  file.rates.push_back({threads, measure_peak_gflops(pool, level), measure_copy_gbps(pool)});
  advance(c, 2);
  for (const auto& [type, arithmetic] : kTypes)
    for (const GemmSize& size : c.gemms) {
      const auto speeds = measure_kernels(size, part, pool, c.rounds, arithmetic);
      if (!speeds.empty())
        file.gemms.push_back({size.m, size.n, size.k, threads, speeds.front().gflops, type});
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
}  // namespace

DeviceFile measure_device(const Calibration& c) {
  DeviceFile file;
  if (c.device.shares_host_memory) {
    file.name = read_machine().processor;
    file.isa = to_string(static_cast<IsaLevel>(c.device.isa));
    file.cores = c.device.threads;
    file.memory_bytes = c.device.memory_bytes;
  } else {
    file = measure_gpu(c.device.ordinal);
    advance(c, 1);
  }
  for (const int threads : c.thread_counts()) {
    if (c.device.shares_host_memory) measure_rates(c, threads, file);
    measure_curves(c, threads, file);
  }
  return file;
}

DeviceFile measure_gpu(int ordinal) {
  const DeviceInfo info = cuda_device(ordinal);
  const std::unique_ptr<Device> device = open_device(info);
  DeviceFile file;
  file.kind = info.backend;
  file.name = info.name;
  file.memory_bytes = info.memory_bytes;
  file.compute = info.compute, file.processors = info.processors;
  file.l2_bytes = info.l2_bytes, file.foreign_bytes = device->foreign_bytes();
  file.copy_gbps = measure_cuda_copy_gbps(*device);
  for (const char* type : kGpuTypes) {
    try {
      file.tflops[type] = measure_cuda_peak_gflops(*device, type) / 1e3;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice || type == std::string("f32")) throw;
    }
  }
  return file;
}

PlanTarget gpu_target(int ordinal) {
  PlanTarget target = file_target(measure_gpu(ordinal), 0, "");
  target.device.ordinal = ordinal;
  target.available_bytes = open_device(target.device)->usable_bytes();
  return target;
}

}  // namespace vitrail
