#include "cli/plan_target.h"

#include <algorithm>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/device_choice.h"
#include "io/shipped.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

namespace {

// What the file has no figures of.
void refuse_unmeasured(const DeviceFile& device, const std::string& isa, int threads) {
  if (!isa.empty() && isa != device.isa)
    throw Error(ErrorKind::kUsage,
                device.is_gpu()
                    ? strf("--target is a GPU and has no instruction set %s", isa.c_str())
                    : strf("--target was measured with %s, not with %s", device.isa.c_str(), isa.c_str()),
                "leave out --isa, or make another file there: vitrail bench calibrate --isa NAME");
  if (!device.is_gpu() && threads > device.cores)
    throw Error(
        ErrorKind::kUsage,
        strf("--target has %s, not the %d of --threads", format_count(device.cores, "core").c_str(), threads),
        "fewer --threads, or none for all of its cores");
}

PlanTarget target_of_file(DeviceFile file, int threads) {
  PlanTarget target;
  target.device = file.info(threads);
  target.available_bytes = file.available_bytes();
  target.foreign_bytes = file.foreign_bytes;
  target.file = std::move(file);
  return target;
}

// The card here: free memory counts, not all that it has.
PlanTarget target_of_gpu(int ordinal) {
  PlanTarget target = target_of_file(measure_gpu(ordinal), 0);
  target.device.ordinal = ordinal;
  target.available_bytes = open_device(target.device)->usable_bytes();
  return target;
}

}  // namespace

std::string find_device_file(const std::string& name, const std::vector<fs::path>& places) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos || fs::exists(name, ignored)) return name;
  std::vector<std::string> known;
  for (const fs::path& place : places) {
    const fs::path candidate = place / (name + ".json");
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    for (fs::directory_iterator it(place, ignored), end; !ignored && it != end; it.increment(ignored))
      if (it->path().extension() == ".json") known.push_back(it->path().stem().string());
  }
  throw Error(ErrorKind::kData, strf("no device %s", quoted(name).c_str()),
              did_you_mean(name, known, "--target ", "a file of vitrail bench calibrate --out FILE"));
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

PlanTarget read_plan_target(const Options& options) {
  const auto threads = static_cast<int>(options.integer("threads"));
  const std::string& isa = options.text("isa");
  const std::optional<int> ordinal = parse_cuda(options.text("device"));
  if (options.given("target")) {
    if (ordinal)
      throw Error(ErrorKind::kUsage, "--target and --device cuda name two devices", "leave one of them out");
    DeviceFile file = read_device_file(
        find_device_file(options.text("target"), shipped_places("devices", "configs/devices")));
    refuse_unmeasured(file, isa, threads);
    return target_of_file(std::move(file), threads);
  }
  if (ordinal) return target_of_gpu(*ordinal);
  PlanTarget target;
  target.device = planned_cpu_device(threads, isa);
  target.available_bytes = free_memory().bytes;
  return target;
}

bool runs_here(const DeviceInfo& device) {
  const std::vector<IsaLevel> levels = available_isa_levels();
  return std::find(levels.begin(), levels.end(), static_cast<IsaLevel>(device.isa)) != levels.end();
}

}  // namespace vitrail::cli
