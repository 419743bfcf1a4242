// Laws of scaling fitted to measured points by least squares. Knows no study.
#pragma once

#include <optional>
#include <vector>

namespace vitrail {

// A time or a speed-up with so many ranks.
struct ScalingPoint {
  double ranks = 1, value = 0;
};

// A law with one number: the share of the work that is not shared out. `error` is the root of the mean
// squared difference from the points, in units of their value.
struct ShareFit {
  double serial_share = 0, error = 0;
  double most_speedup() const;  // with any number of ranks, by Amdahl; infinite without a serial share
};

// Amdahl: with n ranks the same work takes t1 (s + (1 - s) / n). `times` hold one for a single rank; nothing
// without it and another.
std::optional<ShareFit> fit_amdahl(const std::vector<ScalingPoint>& times);
// Gustafson: n ranks do s + n (1 - s) times the work of one in the time of one. `speedups` are n t1 / tn.
std::optional<ShareFit> fit_gustafson(const std::vector<ScalingPoint>& speedups);

// alpha + beta x bytes: what a message costs, and what each of its bytes does.
struct LatencyFit {
  double alpha_s = 0, beta_s_per_byte = 0;
  double error = 0;  // the largest relative difference from a point
  double bytes_per_s() const { return beta_s_per_byte > 0 ? 1 / beta_s_per_byte : 0; }
  double seconds(double bytes) const { return alpha_s + beta_s_per_byte * bytes; }
};
struct MessageTime {
  double bytes = 0, seconds = 0;
};
// Relative differences are made least, so that short messages count as much as long ones; neither number is
// below 0. Nothing for fewer than two sizes.
std::optional<LatencyFit> fit_latency(const std::vector<MessageTime>& times);

}  // namespace vitrail
