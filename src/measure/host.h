// The hardware of this machine, read from /proc and /sys: processor, cores, caches, memory, disk. Measures
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/device_info.h"

namespace vitrail {

struct CacheInfo {
  std::string name;  // "L1d", "L2", "L3"
  uint64_t bytes = 0;
  int shared_by = 1;  // logical processors
};

struct MachineInfo {
  std::string processor;
  std::vector<std::string> isa, isa_missing;  // those for which Vitrail has or plans kernels
  int cores = 0;                              // logical
  int usable = 0;                             // the cores that this process may run on
  std::vector<CacheInfo> caches;
  uint64_t memory_bytes = 0, memory_available_bytes = 0;
  std::string memory_where;  // what bounds the available bytes, as FreeMemory states it
};
MachineInfo read_machine();
// Returns the name by which files know a device of this machine: its own, or that of the processor's model.
std::string name_of(const DeviceInfo& device);

// Returns the bytes free to this user where `path` lies; 0 when unknown.
uint64_t free_disk_bytes(const std::string& path);

// Returns the value after "name :" in /proc text, trimmed; empty when it is missing.
std::string proc_field(std::string_view text, std::string_view name);
// Sorts the instruction sets into those among the flags of /proc/cpuinfo and those that are missing.
void read_instructions(const std::string& flags, MachineInfo& info);
// Parses "32K", "1024K", "8M" as sysfs writes them.
uint64_t parse_cache_size(std::string_view text);

}  // namespace vitrail
