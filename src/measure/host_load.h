// How busy the machine was with other work during a measurement: what a figure is worth. Used by bench
// calibrate.
#pragma once

#include <string>
#include <string_view>

namespace vitrail {

// Seconds of processor time since the system started that were not idle, of all cores together, from the text
// of /proc/stat; 0 when it says nothing. Time that a virtual machine was kept waiting counts.
double busy_seconds(std::string_view proc_stat, double ticks_per_second);

// Watches from its construction on.
class HostLoad {
 public:
  HostLoad();
  // Cores that others kept busy on average until now.
  double cores() const;

 private:
  double busy_, own_, wall_;  // seconds at the start
};

// A warning when that is more than a twentieth of the machine; empty otherwise.
std::string busy_warning(double cores_of_others, int cores);

}  // namespace vitrail
