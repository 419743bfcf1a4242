// The identity of a process, which stays valid after it ends: host, pid and start time, so that a later
// process with the same pid is not mistaken for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vitrail {

struct ProcessMark {
  std::string host;    // letters, digits, '.' and '_' only
  int64_t pid = 0;     // > 0
  uint64_t start = 0;  // clock ticks from the host's boot to the process's start; 0: unknown

  static ProcessMark current();
  static std::optional<ProcessMark> parse(std::string_view text);  // what text() gives
  std::string text() const;                                        // "host-pid-start", good in a file name

  // Seconds since the process, which must be of this host, was started; 0: unknown.
  double age_s() const;
  // Returns whether it is certain that the process is gone: it ran on this host, and its pid is free or
  // belongs to another process.
  bool surely_dead() const;
  bool operator==(const ProcessMark&) const = default;
};

}  // namespace vitrail
