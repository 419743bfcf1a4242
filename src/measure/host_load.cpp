#include "measure/host_load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "base/error.h"
#include "base/file.h"

namespace vitrail {

namespace {
constexpr size_t kMaxStatBytes = 8 << 20;
constexpr double kNoticed = 0.05;  // share of the cores from which other work is reported

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double busy_now() {
  try {
    return busy_seconds(read_file("/proc/stat", kMaxStatBytes), static_cast<double>(::sysconf(_SC_CLK_TCK)));
  } catch (const Error&) {
    return 0;
  }
}
}  // namespace

double busy_seconds(std::string_view proc_stat, double ticks_per_second) {
  if (!proc_stat.starts_with("cpu ")) return 0;
  const std::string line(proc_stat.substr(4, proc_stat.find('\n') - 4));
  // The fields are user nice system idle iowait irq softirq steal; guests are part of user already.
  double ticks = 0;
  const char* at = line.c_str();
  for (int column = 0; column < 8; ++column) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at) break;
    at = end;
    if (column != 3 && column != 4) ticks += value;
  }
  return ticks / ticks_per_second;
}

HostLoad::HostLoad()
    : busy_(busy_now()), own_(seconds_of(CLOCK_PROCESS_CPUTIME_ID)), wall_(seconds_of(CLOCK_MONOTONIC)) {}

double HostLoad::cores() const {
  const double wall = seconds_of(CLOCK_MONOTONIC) - wall_;
  const double others = busy_now() - busy_ - (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - own_);
  return wall > 0 ? std::max(0.0, others / wall) : 0;
}

std::string busy_warning(double cores_of_others, int cores) {
  if (cores_of_others <= kNoticed * cores) return {};
  return strf(
      "warning: other work kept %.1f of %d cores busy meanwhile, so these figures are too low; measure again "
      "on an idle machine",
      cores_of_others, cores);
}

}  // namespace vitrail
