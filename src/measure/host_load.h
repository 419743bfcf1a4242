// Measures how busy the machine was with other work during a measurement: it bounds the trust in a figure.
#pragma once

#include <string>
#include <string_view>

namespace vitrail {

// Returns the processor time since the system started that was not idle, in seconds over all cores, from the
// text of /proc/stat; 0 when it has none. Time stolen from a virtual machine counts as busy.
double busy_seconds(std::string_view proc_stat, double ticks_per_second);

// Measures from its construction on.
class HostLoad {
 public:
  HostLoad();
  // Returns the number of cores that other processes kept busy on average until now.
  double cores() const;

 private:
  double busy_, own_, wall_;  // seconds at the start
};

// Returns a warning when that is more than a twentieth of the machine; empty otherwise.
std::string busy_warning(double cores_of_others, int cores);

}  // namespace vitrail
