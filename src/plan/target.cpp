#include "plan/target.h"

#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "base/values.h"
#include "telemetry/format.h"

namespace vitrail {

namespace fs = std::filesystem;

namespace {

// Refuses settings for which the file has no figures.
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

PlanTarget file_target(DeviceFile file, int threads, const std::string& isa) {
  refuse_unmeasured(file, isa, threads);
  PlanTarget target;
  target.device = file.info(threads);
  target.available_bytes = file.available_bytes();
  target.foreign_bytes = file.foreign_bytes;
  target.file = std::move(file);
  return target;
}

PlanTarget processor_target(int threads, const std::string& isa) {
  PlanTarget target;
  target.device = planned_cpu_device(threads, isa);
  target.available_bytes = free_memory().bytes;
  return target;
}

}  // namespace vitrail
