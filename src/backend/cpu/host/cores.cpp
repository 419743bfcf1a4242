#include "backend/cpu/host/cores.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/cores.h"

namespace vitrail::cpu {

namespace {

// The number of cores that a container's CPU quota amounts to ("200000 100000" is two); a large number where
// there is no quota.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return 1 << 16;
  return static_cast<int>(std::ceil(quota / period));
}

}  // namespace

int usable_cores(int sharing_cores, int sharing_quota) {
  const auto allowed = static_cast<int>(allowed_cores().size());
  const int cores = allowed > 0 ? allowed : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(cores / sharing_cores, quota_cores() / sharing_quota));
}

size_t physical_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace vitrail::cpu
