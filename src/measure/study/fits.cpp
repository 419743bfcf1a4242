#include "measure/study/fits.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vitrail {

namespace {

// Finds s for which base + s slope is nearest to the values; base and slope by rank count.
template <typename Base, typename Slope>
std::optional<ShareFit> fit_share(const std::vector<ScalingPoint>& points, const Base& base,
                                  const Slope& slope) {
  double products = 0, squares = 0;
  for (const ScalingPoint& p : points) {
    products += (p.value - base(p.ranks)) * slope(p.ranks);
    squares += slope(p.ranks) * slope(p.ranks);
  }
  if (squares == 0) return std::nullopt;
  ShareFit fit{.serial_share = products / squares};
  double error = 0;
  for (const ScalingPoint& p : points) {
    const double off = p.value - base(p.ranks) - fit.serial_share * slope(p.ranks);
    error += off * off;
  }
  fit.error = std::sqrt(error / static_cast<double>(points.size()));
  return fit;
}

double largest_error(const LatencyFit& fit, const std::vector<MessageTime>& times) {
  double most = 0;
  for (const MessageTime& t : times) most = std::max(most, std::abs(fit.seconds(t.bytes) / t.seconds - 1));
  return most;
}

}  // namespace

double ShareFit::most_speedup() const {
  return serial_share > 0 ? 1 / serial_share : std::numeric_limits<double>::infinity();
}

std::optional<ShareFit> fit_amdahl(const std::vector<ScalingPoint>& times) {
  double single = 0;
  for (const ScalingPoint& p : times)
    if (p.ranks == 1) single = p.value;
  if (single <= 0) return std::nullopt;
  std::vector<ScalingPoint> relative;
  relative.reserve(times.size());
  for (const ScalingPoint& p : times) relative.push_back({p.ranks, p.value / single});
  return fit_share(
      relative, [](double n) { return 1 / n; }, [](double n) { return 1 - 1 / n; });
}

std::optional<ShareFit> fit_gustafson(const std::vector<ScalingPoint>& speedups) {
  return fit_share(
      speedups, [](double n) { return n; }, [](double n) { return 1 - n; });
}

std::optional<LatencyFit> fit_latency(const std::vector<MessageTime>& times) {
  // Each row is divided by its time: alpha / t + beta bytes / t = 1.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const MessageTime& t : times) {
    if (!(t.seconds > 0)) return std::nullopt;
    const double x = 1 / t.seconds, y = t.bytes / t.seconds;
    aa += x * x;
    ab += x * y;
    bb += y * y;
    a += x;
    b += y;
  }
  const double determinant = aa * bb - ab * ab;
  if (times.size() < 2 || determinant <= 1e-12 * aa * bb) return std::nullopt;
  LatencyFit fit{(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
  if (fit.alpha_s < 0) fit = {0, b / bb};
  if (fit.beta_s_per_byte < 0) fit = {a / aa, 0};
  fit.error = largest_error(fit, times);
  return fit;
}

}  // namespace vitrail
