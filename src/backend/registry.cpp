#include "backend/registry.h"

#include "backend/cpu/host/peak.h"
#include "backend/cpu/kernels.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/peak.h"
#include "backend/ref/kernels.h"
#include "base/text.h"
#include "base/values.h"

namespace vitrail {

namespace {

std::string no_problem() {
  return {};
}

std::vector<std::string> this_processor() {
  const DeviceInfo device = cpu_device();
  return {strf("%d cores with %s", device.threads, to_string(static_cast<IsaLevel>(device.isa)))};
}

DeviceInfo find_processor(const DeviceRequest& request) {
  return cpu_device(request.threads, request.isa);
}

std::unique_ptr<Device> open_processor(const DeviceInfo&) {
  return open_host_device();
}

DevicePeaks measure_processor(const DeviceInfo& device, const std::string&, bool copying) {
  ThreadPool pool(device.threads);
  return {measure_peak_gflops(pool, static_cast<IsaLevel>(device.isa)),
          copying ? measure_copy_gbps(pool) : 0};
}

std::vector<std::string> gpus() {
  return cuda_report().gpus;
}

DevicePeaks measure_gpu(const DeviceInfo& info, const std::string& type, bool copying) {
  const std::unique_ptr<Device> device = open_cuda_device(info);
  return {measure_cuda_peak_gflops(*device, type), copying ? measure_cuda_copy_gbps(*device) : 0};
}

}  // namespace

const std::vector<BackendEntry>& backend_registry() {
  static const std::vector<BackendEntry> rows = {
      {.name = "cpu",
       .kernels = cpu_backend,
       .names_devices = true,
       .numbered = false,
       .problem = no_problem,
       .devices = this_processor,
       .find = find_processor,
       .open = open_processor,
       .measure = measure_processor},
      {.name = "cuda",
       .kernels = cuda_backend,
       .names_devices = true,
       .numbered = true,
       .problem = [] { return cuda_report().problem; },
       .devices = gpus,
       .find = [](const DeviceRequest& request) { return cuda_device(request.ordinal); },
       .open = open_cuda_device,
       .measure = measure_gpu},
      {.name = "ref",
       .kernels = ref_backend,
       .names_devices = false,
       .numbered = false,
       .problem = no_problem,
       .devices = this_processor,
       .find = find_processor,
       .open = open_processor,
       .measure = measure_processor},
  };
  return rows;
}

const BackendEntry& find_entry(std::string_view backend) {
  std::string known;
  for (const BackendEntry& row : backend_registry()) {
    if (backend == row.name) return row;
    known += std::string(known.empty() ? "" : ", ") + row.name;
  }
  throw Error(ErrorKind::kUsage, strf("unknown backend '%s'", std::string(backend).c_str()),
              "one of " + known);
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
    if (row.names_devices)
      text += (text.empty() ? "" : " or ") + std::string(row.name) + (row.numbered ? "[:i]" : "");
  return text;
}
}  // namespace

DeviceName parse_device_name(const std::string& name, const char* option) {
  constexpr int64_t kMostDevices = 1024;
  const size_t colon = name.find(':');
  for (const BackendEntry& row : backend_registry()) {
    if (!row.names_devices || name.substr(0, colon) != row.name) continue;
    if (colon == std::string::npos) return {&row, 0};
    const auto number = row.numbered ? parse_integer(name.substr(colon + 1)) : std::nullopt;
    if (number && *number >= 0 && *number < kMostDevices) return {&row, static_cast<int>(*number)};
  }
  throw Error(ErrorKind::kUsage,
              strf("%s expects %s, not %s", option, device_names().c_str(), quoted(name).c_str()),
              strf("%s cpu, %s cuda, or %s cuda:1 for the second GPU", option, option, option));
}

}  // namespace vitrail
