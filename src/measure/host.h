// What this machine is, read from /proc and /sys: processor, cores, caches, memory, disk. Used by doctor
// and by reports that name the machine they ran on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

struct CacheInfo {
  std::string name;  // "L1d", "L2", "L3"
  uint64_t bytes = 0;
  int shared_by = 1;  // logical processors
};

struct MachineInfo {
  std::string processor;
  std::vector<std::string> isa, isa_missing;  // of those Vitrail has or plans kernels for
  int cores = 0;                              // logical
  int usable = 0;                             // of those, what this process may run on
  std::vector<CacheInfo> caches;
  uint64_t memory_bytes = 0, memory_available_bytes = 0;
  std::string memory_where;  // what bounds the available bytes, as FreeMemory says it
};
MachineInfo read_machine();

// Bytes free to this user where `path` lies; 0 when unknown.
uint64_t free_disk_bytes(const std::string& path);

// The value after "name :" in /proc text, trimmed; empty when it is not there.
std::string proc_field(std::string_view text, std::string_view name);
// "32K", "1024K", "8M" as sysfs writes them.
uint64_t parse_cache_size(std::string_view text);

}  // namespace vitrail
