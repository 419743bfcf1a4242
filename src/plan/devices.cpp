#include "plan/devices.h"

#include <algorithm>

#include "backend/cpu/host/cores.h"
#include "backend/cpu/host/levels.h"
#include "base/error.h"

namespace vitrail {

namespace {
std::vector<std::string> names_of(const std::vector<IsaLevel>& levels) {
  std::vector<std::string> names;
  names.reserve(levels.size());
  for (const IsaLevel level : levels) names.emplace_back(to_string(level));
  return names;
}

}  // namespace

NamedDevice named_device(const std::string& device, const char* option) {
  const DeviceName name = parse_device_name(device, option);
  return {name.entry->name, name.ordinal, name.entry->on_host, name.entry->tables.of_sizes != nullptr};
}

bool names_devices(const std::string& backend) {
  return find_entry(backend).names_devices();
}

DeviceInfo device_of(const std::string& backend, const std::string& device, int threads,
                     const std::string& isa) {
  return find_entry(backend).find({parse_device_name(device).ordinal, threads, isa});
}

int HostRank::threads() const {
  return cpu::usable_cores(overlapping > 0 ? overlapping : sharing, sharing);
}

int ranks_on_cores_of(size_t mine, const std::vector<std::vector<int>>& cores) {
  const std::vector<int>& own = cores[mine];
  return static_cast<int>(std::count_if(cores.begin(), cores.end(), [&](const std::vector<int>& others) {
    return own.empty() || others.empty() ||
           std::find_first_of(own.begin(), own.end(), others.begin(), others.end()) != own.end();
  }));
}

int gpu_of(const HostRank& rank, int gpus) {
  if (gpus < 1 || rank.local < gpus) return rank.local;
  if (!rank.shares_gpus)
    throw Error(ErrorKind::kDevice,
                strf("rank %d of this host wants GPU %d: this machine has %d", rank.local, rank.local, gpus),
                strf("at most %d ranks here; or NCCL_MULTI_RANK_GPU_ENABLE=1 (NCCL 2.30) or --device cuda:0, "
                     "and they share",
                     gpus));
  return rank.local % gpus;
}

DeviceInfo device_of_rank(const std::string& backend, std::string device, int threads, const std::string& isa,
                          const HostRank& rank) {
  const BackendEntry& own = *parse_device_name(device).entry;
  if (rank.sharing > 1 && own.numbered && device.find(':') == std::string::npos)
    device = strf("%s:%d", device.c_str(), gpu_of(rank, static_cast<int>(own.report().devices.size())));
  if (rank.sharing > 1 && threads == 0) threads = rank.threads();
  return device_of(backend, device, threads, isa);
}

DeviceInfo device_here(const std::string& device, int threads, const std::string& isa) {
  const DeviceName name = parse_device_name(device);
  return name.entry->find({name.ordinal, threads, isa});
}

DeviceInfo processor_here(int threads, const std::string& isa) {
  return host_entry().find({.threads = threads, .isa = isa});
}

int processor_threads(int threads, const std::string& isa) {
  return processor_here(threads, isa).threads;
}

bool is_reference(const std::string& backend) {
  return find_entry(backend).is_reference;
}

std::vector<std::string> isa_names() {
  return names_of(all_isa_levels());
}

std::vector<std::string> isa_names_here() {
  return names_of(available_isa_levels());
}

std::string isa_name(int isa) {
  return to_string(static_cast<IsaLevel>(isa));
}

std::optional<int> isa_here(const std::string& name) {
  for (const IsaLevel level : available_isa_levels())
    if (name == to_string(level)) return static_cast<int>(level);
  return std::nullopt;
}

bool runs_here(const DeviceInfo& device) {
  const std::vector<IsaLevel> levels = available_isa_levels();
  return std::find(levels.begin(), levels.end(), static_cast<IsaLevel>(device.isa)) != levels.end();
}

std::string device_text(const ExecutionPlan& plan) {
  if (!plan.device.shares_host_memory) return plan.device.backend + " (" + plan.device.name + ")";
  const std::string isa = find_entry(plan.backend->name()).by_isa ? isa_name(plan.device.isa) : "plain";
  return strf("%s (%s, %d thread%s)", plan.backend->name(), isa.c_str(), plan.device.threads,
              plan.device.threads == 1 ? "" : "s");
}

}  // namespace vitrail
