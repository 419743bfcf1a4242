#include "measure/calibrate.h"

#include "backend/cpu/host/peak.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "base/error.h"
#include "measure/host.h"

namespace vitrail {

namespace {
constexpr std::pair<const char*, Arithmetic> kTypes[] = {
    {"f32", Arithmetic::kExact}, {"bf16", Arithmetic::kBF16}, {"int8", Arithmetic::kInt8}};

// Returns the numbers of threads to measure: one, and all of them.
std::vector<int> thread_counts(const DeviceInfo& device) {
  std::vector<int> counts = {1};
  if (device.threads > 1) counts.push_back(device.threads);
  return counts;
}
}  // namespace

std::vector<GemmSize> calibration_gemms() {
  return {{50, 768, 192}, {197, 2304, 768}, {1576, 1024, 4096}};
}

int64_t Calibration::measurements() const {
  return static_cast<int64_t>(thread_counts(device).size() * (2 + gemms.size() * std::size(kTypes)));
}

DeviceFile measure_processor(const Calibration& c) {
  const auto level = static_cast<IsaLevel>(c.device.isa);
  const auto advance = [&](int64_t count) {
    if (c.advance) c.advance(count);
  };
  DeviceFile file;
  file.name = read_machine().processor;
  file.isa = to_string(level);
  file.cores = c.device.threads;
  file.memory_bytes = c.device.memory_bytes;
  for (const int threads : thread_counts(c.device)) {
    ThreadPool pool(threads);
    DeviceInfo part = c.device;
    part.threads = threads;
    file.rates.push_back({threads, measure_peak_gflops(pool, level), measure_copy_gbps(pool)});
    advance(2);
    for (const auto& [type, arithmetic] : kTypes)
      for (const GemmSize& size : c.gemms) {
        const auto speeds = measure_kernels(size, part, pool, c.rounds, arithmetic);
        if (!speeds.empty())
          file.gemms.push_back({size.m, size.n, size.k, threads, speeds.front().gflops, type});
        advance(1);
      }
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
  for (const char* type : kGpuTypes) file.tflops[type] = measure_cuda_peak_gflops(*device, type) / 1e3;
  for (const char* type : kOtherGpuTypes) {
    try {
      file.tflops[type] = measure_cuda_peak_gflops(*device, type) / 1e3;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
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
