#include "plan/target.h"

#include <algorithm>
#include <map>

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
  std::sort(known.begin(), known.end());
  throw Error(
      ErrorKind::kData, strf("no device %s", quoted(name).c_str()),
      did_you_mean(name, known, "--target ",
                   "one of " + join(known, ", ") + ", or a file of vitrail bench calibrate --out FILE"));
}

std::vector<std::string> all_device_files(const std::vector<fs::path>& places) {
  std::map<std::string, std::string> found;
  std::error_code ignored;
  for (const fs::path& place : places)
    for (fs::directory_iterator it(place, ignored), end; !ignored && it != end; it.increment(ignored))
      if (it->path().extension() == ".json") found.emplace(it->path().stem().string(), it->path().string());
  std::vector<std::string> paths;
  for (const auto& [name, path] : found) paths.push_back(path);
  return paths;
}

std::vector<std::string> named_device_files(const std::string& names, const std::vector<fs::path>& places) {
  if (names == "all") return all_device_files(places);
  std::vector<std::string> paths;
  for (const std::string_view name : split(names, ','))
    paths.push_back(find_device_file(std::string(name), places));
  return paths;
}

PlanTarget file_target(DeviceFile file, int threads, const std::string& isa) {
  refuse_unmeasured(file, isa, threads);
  PlanTarget target;
  target.device = file.info(threads);
  target.available_bytes = file.available_bytes();
  target.foreign_bytes = file.foreign_bytes;
  target.file = std::move(file);
  target.named = true;
  return target;
}

PlanTarget processor_target(int threads, const std::string& isa) {
  PlanTarget target;
  target.device = planned_cpu_device(threads, isa);
  target.available_bytes = free_memory().bytes;
  return target;
}

}  // namespace vitrail
