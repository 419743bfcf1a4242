#include "backend/registry.h"

#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/ref/kernels.h"
#include "base/text.h"
#include "base/values.h"

namespace vitrail {

const std::vector<BackendEntry>& backend_registry() {
  static const std::vector<BackendEntry> rows = {ref_entry(), cpu_entry(), cuda_entry()};
  return rows;
}

const BackendEntry& find_entry(std::string_view backend) {
  std::vector<std::string> known;
  for (const BackendEntry& row : backend_registry()) {
    if (backend == row.name) return row;
    known.emplace_back(row.name);
  }
  std::sort(known.begin(), known.end());
  throw Error(ErrorKind::kUsage, strf("unknown backend '%s'", std::string(backend).c_str()),
              "one of " + join(known, ", "));
}

const BackendEntry& host_entry() {
  for (const BackendEntry& row : backend_registry())
    if (row.on_host && row.names_devices()) return row;
  throw Error(ErrorKind::kInternal, "no backend has the processor as its device");
}

const Backend& find_backend(std::string_view name) {
  return find_entry(name).kernels();
}

std::unique_ptr<Device> open_device(const DeviceInfo& info) {
  return find_entry(info.backend).open(info);
}

namespace {
// "cpu or cuda[:i]"
std::string device_names() {
  std::string text;
  for (const BackendEntry& row : backend_registry())
    if (row.names_devices())
      text += (text.empty() ? "" : " or ") + std::string(row.name) + (row.numbered ? "[:i]" : "");
  return text;
}
}  // namespace

DeviceName parse_device_name(const std::string& name, const char* option) {
  constexpr int64_t kMostDevices = 1024;
  const size_t colon = name.find(':');
  for (const BackendEntry& row : backend_registry()) {
    if (!row.names_devices() || name.substr(0, colon) != row.name) continue;
    if (colon == std::string::npos) return {&row, 0};
    const auto number = row.numbered ? parse_integer(name.substr(colon + 1)) : std::nullopt;
    if (number && *number >= 0 && *number < kMostDevices) return {&row, static_cast<int>(*number)};
  }
  throw Error(ErrorKind::kUsage,
              strf("%s expects %s, not %s", option, device_names().c_str(), quoted(name).c_str()),
              strf("%s cpu, %s cuda, or %s cuda:1 for the second GPU", option, option, option));
}

const BackendEntry& entry_on(const DeviceName& device, std::string_view backend) {
  const BackendEntry& named = find_entry(backend);
  return std::string_view(named.runs_on) == device.entry->name ? named : *device.entry;
}

}  // namespace vitrail
