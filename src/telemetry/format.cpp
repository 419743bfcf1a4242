#include "telemetry/format.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace vitrail {

namespace {
// Formats a value in 1..1000 with three significant digits.
std::string three_digits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return strf("%.*f", decimals, value);
}
}  // namespace

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return strf("%d B", static_cast<int>(bytes));
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return three_digits(value) + " " + kUnits[unit];
}

std::string format_integer(int64_t value) {
  std::string digits = strf("%lld", static_cast<long long>(value));
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string format_count(int64_t count, const char* noun) {
  return format_integer(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string format_si(double value) {
  static constexpr const char* kUnits[] = {"", " K", " M", " G", " T", " P"};
  if (!std::isfinite(value)) return format_significant(value);
  double size = std::fabs(value);
  size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < std::size(kUnits); ++unit) size /= 1000;
  return (value < 0 ? "-" : "") + three_digits(size) + kUnits[unit];
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995e-3) return strf("%.0f us", seconds * 1e6);
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  const double whole = std::min(std::round(seconds), 1e15);
  const auto total = static_cast<long long>(whole);
  if (total < 3600) return strf("%lld min %02lld s", total / 60, total % 60);
  return strf("%lld h %02lld min", total / 3600, total / 60 % 60);
}

TimeUnit time_unit(double seconds) {
  if (seconds < 1e-3) return {"us", 1e6};
  if (seconds < 1) return {"ms", 1e3};
  if (seconds < 600) return {"s", 1};
  return seconds < 7200 ? TimeUnit{"min", 1.0 / 60} : TimeUnit{"h", 1.0 / 3600};
}

std::string format_percent(double share) {
  return std::isfinite(share) ? strf("%.2f %%", share * 100) : format_significant(share);
}

std::string format_significant(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return strf("%.4g", value);
}

std::string format_bar(double share, int width) {
  static constexpr const char* kPart[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) share = 0;
  const int eighths = static_cast<int>(std::lround(std::min(share, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kPart[eighths % 8];
  const int used = eighths / 8 + (eighths % 8 ? 1 : 0);
  return bar + std::string(static_cast<size_t>(std::max(0, width - used)), ' ');
}

size_t display_width(std::string_view text) {
  size_t cells = 0;
  bool in_colour = false;  // between ESC and 'm'
  for (const char c : text) {
    if (c == '\033') in_colour = true;
    const bool continuation = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!in_colour && !continuation) ++cells;
    if (c == 'm') in_colour = false;
  }
  return cells;
}

}  // namespace vitrail
