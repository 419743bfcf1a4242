#include "measure/host.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>

#include "base/cores.h"
#include "base/error.h"
#include "base/file.h"
#include "base/free_memory.h"

namespace vitrail {

namespace {
constexpr size_t kMaxProcBytes = 8 << 20;

// Returns empty text when the file is missing: these files differ between kernels and containers.
std::string read_if_there(const std::string& path) {
  try {
    std::string text = read_file(path, kMaxProcBytes);
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
  } catch (const Error&) {
    return {};
  }
}

// Instruction sets as Linux names them; a listed one is present and enabled by the system.
constexpr const char* kInstructions[] = {"sse4_2",      "avx",      "avx2",     "fma",
                                         "avx512f",     "avx512bw", "avx_vnni", "avx512_vnni",
                                         "avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"};

void read_caches(MachineInfo& info) {
  for (int index = 0; index < 16; ++index) {
    const std::string folder = strf("/sys/devices/system/cpu/cpu0/cache/index%d/", index);
    const std::string level = read_if_there(folder + "level"), type = read_if_there(folder + "type");
    if (level.empty()) return;
    if (type == "Instruction") continue;
    CacheInfo cache{"L" + level + (type == "Data" ? "d" : ""),
                    parse_cache_size(read_if_there(folder + "size")), 0};
    for (const char c : read_if_there(folder + "shared_cpu_map")) {
      const char digit[] = {c, '\0'};
      cache.shared_by += std::popcount(static_cast<unsigned>(std::strtoul(digit, nullptr, 16)));
    }
    info.caches.push_back(cache);
  }
}

void read_memory(MachineInfo& info) {
  const std::string text = read_if_there("/proc/meminfo");
  const auto kilobytes = [&](const char* name) {
    return std::strtoull(proc_field(text, name).c_str(), nullptr, 10) * 1024;
  };
  info.memory_bytes = kilobytes("MemTotal");
  const FreeMemory free = free_memory();
  info.memory_available_bytes = free.bytes;
  info.memory_where = free.where;
}
}  // namespace

void read_instructions(const std::string& flags, MachineInfo& info) {
  const std::string words = " " + flags + " ";
  for (const char* name : kInstructions) {
    const bool there = words.find(strf(" %s ", name)) != std::string::npos;
    (there ? info.isa : info.isa_missing).emplace_back(name);
  }
}

std::string proc_field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t colon = line.find(':');
    std::string_view key = line.substr(0, colon);
    key = key.substr(0, key.find_last_not_of(" \t") + 1);
    if (key == name && colon != line.npos) {
      const size_t start = line.find_first_not_of(" \t", colon + 1);
      return start == line.npos ? "" : std::string(line.substr(start));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

uint64_t parse_cache_size(std::string_view text) {
  char* end = nullptr;
  const std::string copy(text);
  const uint64_t value = std::strtoull(copy.c_str(), &end, 10);
  return value * (*end == 'K' ? 1u << 10 : *end == 'M' ? 1u << 20 : 1u);
}

MachineInfo read_machine() {
  MachineInfo info;
  const std::string cpuinfo = read_if_there("/proc/cpuinfo");
  info.processor = proc_field(cpuinfo, "model name");
  if (info.processor.empty()) info.processor = "unknown";
  read_instructions(proc_field(cpuinfo, "flags"), info);
  info.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const auto allowed = static_cast<int>(allowed_cores().size());
  info.usable = allowed > 0 ? allowed : info.cores;
  read_caches(info);
  read_memory(info);
  return info;
}

std::string name_of(const DeviceInfo& device) {
  return device.shares_host_memory ? read_machine().processor : device.name;
}

uint64_t free_disk_bytes(const std::string& path) {
  std::error_code error;
  const auto space = std::filesystem::space(path, error);
  return error ? 0 : space.available;
}

}  // namespace vitrail
