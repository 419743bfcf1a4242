#include "plan/target.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/text.h"
#include "base/values.h"
#include "plan/devices.h"

namespace vitrail {

namespace fs = std::filesystem;

std::string find_device_file(const std::string& name, const std::vector<fs::path>& places,
                             const std::string& option) {
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
      did_you_mean(name, known, option + " ",
                   "one of " + join(known, ", ") + ", or a file of vitrail bench calibrate --out FILE"));
}

std::vector<std::string> all_device_files(const std::vector<fs::path>& places) {
  std::map<std::string, std::string> found;
  std::error_code ignored;
  for (const fs::path& place : places)
    for (fs::directory_iterator it(place, ignored), end; !ignored && it != end; it.increment(ignored))
      if (it->path().extension() == ".json") found.emplace(it->path().stem().string(), it->path().string());
  std::vector<std::string> paths;
  paths.reserve(found.size());
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
  file.require_measured(threads, isa);
  PlanTarget target;
  target.device = file.info(threads);
  target.available_bytes = file.available_bytes();
  target.foreign_bytes = file.foreign_bytes;
  target.file = std::move(file);
  target.named = true;
  return target;
}

namespace {
PlanTarget opened_target(const DeviceInfo& device, const TargetRequest& request) {
  const std::unique_ptr<Device> opened = open_device(device);
  PlanTarget target = request.measure ? file_target(request.measure(device, *opened), 0, "") : PlanTarget();
  target.device = device;
  target.available_bytes = opened->usable_bytes();
  target.foreign_bytes = opened->foreign_bytes();
  return target;
}
}  // namespace

PlanTarget resolve_target(const TargetRequest& request) {
  if (request.file)
    return file_target(read_device_file(find_device_file(*request.file, request.places)), request.threads,
                       request.isa);
  const DeviceName name = parse_device_name(request.device);
  if (!name.entry->on_host) return opened_target(name.entry->find({.ordinal = name.ordinal}), request);
  PlanTarget target;
  target.device = name.entry->planned({.threads = request.threads, .isa = request.isa});
  target.available_bytes = free_memory().bytes;
  return target;
}

}  // namespace vitrail
