#include "base/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace vitrail {

namespace {

using Bytes = std::optional<uint64_t>;

// Reads a file; the result is empty when it does not exist, since these files differ between kernels and
// containers.
std::string read_if_there(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  try {
    return read_file(path, kMost);
  } catch (const Error&) {
    return {};
  }
}

// Calls `use` with each line.
template <typename Use>
void for_lines(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    use(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// Returns the first number of `text`; nothing for "max" and "unlimited".
Bytes first_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() ? Bytes(value) : std::nullopt;
}

// Returns the number after `key` on the line that begins with it.
Bytes field(std::string_view text, std::string_view key) {
  Bytes value;
  for_lines(text, [&](std::string_view line) {
    if (!value && line.starts_with(key)) value = first_number(line.substr(key.size()));
  });
  return value;
}

uint64_t left_of(uint64_t limit, uint64_t used) {
  return limit - std::min(used, limit);
}

class Smallest {
 public:
  void consider(Bytes bytes, const std::string& where) {
    // Zero means unknown to callers, so a limit that is used up leaves one byte.
    if (bytes && (found_.bytes == 0 || *bytes < found_.bytes)) found_ = {std::max<size_t>(*bytes, 1), where};
  }
  FreeMemory take() { return std::move(found_); }

 private:
  FreeMemory found_;
};

void consider_machine(const std::string& root, Smallest& smallest) {
  const std::string text = read_if_there(root + "/proc/meminfo");
  const Bytes available = field(text, "MemAvailable:"), swap = field(text, "SwapFree:"),
              total = field(text, "MemTotal:");
  if (!available) return;
  uint64_t kilobytes = *available + swap.value_or(0);
  if (total) kilobytes = std::min(kilobytes, *total);
  smallest.consider(kilobytes * 1024, FreeMemory().where);
}

// The files of one version of control groups: where its tree is mounted and what its files are called.
struct GroupFiles {
  std::string mount;
  const char *limit, *used;
  std::vector<std::string_view> cached;  // keys of memory.stat that the kernel can reclaim
};

GroupFiles first_version(const std::string& root) {
  return {root + "/sys/fs/cgroup/memory",
          "memory.limit_in_bytes",
          "memory.usage_in_bytes",
          {"total_active_file ", "total_inactive_file "}};
}
GroupFiles second_version(const std::string& root) {
  return {root + "/sys/fs/cgroup",
          "memory.max",
          "memory.current",
          {"active_file ", "inactive_file ", "slab_reclaimable "}};
}

Bytes left_in_group(const GroupFiles& files, const std::string& folder) {
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;  // v1 writes a huge number
  const Bytes limit = first_number(read_if_there(folder + "/" + files.limit));
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const uint64_t used = first_number(read_if_there(folder + "/" + files.used)).value_or(0);
  const std::string stat = read_if_there(folder + "/memory.stat");
  uint64_t cached = 0;
  for (const std::string_view key : files.cached) cached += field(stat, key).value_or(0);
  return left_of(*limit, left_of(used, cached));
}

// A container may see its own group as the root of the tree under the name it has outside: folders that are
// not there are passed over, and the root is looked at in any case.
void consider_groups(const GroupFiles& files, std::string group, Smallest& smallest) {
  for (;;) {
    while (group.ends_with('/')) group.pop_back();
    smallest.consider(left_in_group(files, files.mount + group),
                      "left under the memory limit of the control group " + (group.empty() ? "/" : group));
    if (group.empty()) return;
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

// Finds this process's groups in lines "5:memory:/job" (v1) and "0::/job" (v2).
void consider_own_groups(const std::string& root, Smallest& smallest) {
  const std::string text = read_if_there(root + "/proc/self/cgroup");
  for_lines(text, [&](std::string_view line) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) return;
    const std::string controllers =
        strf(",%s,", std::string(line.substr(first + 1, second - first - 1)).c_str());
    const std::string group(line.substr(second + 1));
    if (controllers == ",,") consider_groups(second_version(root), group, smallest);
    if (controllers.find(",memory,") != controllers.npos)
      consider_groups(first_version(root), group, smallest);
  });
}

void consider_process(const std::string& root, Smallest& smallest) {
  const std::string limits = read_if_there(root + "/proc/self/limits"),
                    status = read_if_there(root + "/proc/self/status");
  const auto consider = [&](const char* limit, const char* used, const char* where) {
    const Bytes most = field(limits, limit), kilobytes = field(status, used);
    if (most) smallest.consider(left_of(*most, kilobytes.value_or(0) * 1024), where);
  };
  consider("Max address space", "VmSize:", "left of the address space that ulimit -v allows");
  consider("Max data size", "VmData:", "left of the data that ulimit -d allows");
}

}  // namespace

FreeMemory free_memory(const std::string& root) {
  Smallest smallest;
  consider_machine(root, smallest);
  consider_own_groups(root, smallest);
  consider_process(root, smallest);
  return smallest.take();
}

FreeMemory FreeMemory::shared_by(int sharers) const {
  if (sharers <= 1 || bytes == 0) return *this;
  return {std::max<size_t>(bytes / static_cast<size_t>(sharers), 1),
          strf("the share of one of %d ranks in what is %s", sharers, where.c_str()), sharers};
}

std::string FreeMemory::advice() const {
  return ranks > 1 ? "; fewer ranks on this host, whose shares are larger" : "";
}

std::string mib(size_t bytes) {
  return strf("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

void require_free_memory(size_t bytes, const std::string& what) {
  const FreeMemory free = free_memory();
  if (free.bytes == 0 || bytes <= free.bytes) return;
  throw Error(ErrorKind::kMemory,
              strf("%s needs %s, and %s is %s", what.c_str(), mib(bytes).c_str(), mib(free.bytes).c_str(),
                   free.where.c_str()),
              "free some memory or raise that limit");
}

}  // namespace vitrail
