// Numbers formatted for people: bytes, counts, times, shares. Returns strings, prints nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrail {

std::string format_bytes(uint64_t bytes);                   // "512 B", "22.4 KiB", "1.25 GiB"
std::string format_integer(int64_t value);                  // "5,717,416"
std::string format_count(int64_t count, const char* noun);  // "1 tensor", "1,200 tensors"
std::string format_si(double value);                        // "5.72 M", "1.26 G", "17.6"
std::string format_seconds(double seconds);    // "85 us", "12.3 ms", "4.20 s", "3 min 05 s", "2 h 10 min"
std::string format_percent(double share);      // 0.3529 -> "35.29 %"
std::string format_significant(double value);  // four significant digits, "nan" and "inf" too

// The unit in which times up to `seconds` are read best: {"ms", 1000}.
struct TimeUnit {
  const char* name;
  double per_second;
};
TimeUnit time_unit(double seconds);

// Draws a bar of `width` cells, filled in eighths of a cell by block characters; share is clamped to 0..1.
std::string format_bar(double share, int width);

// Counts the cells a text takes on a terminal: code points of UTF-8, colour sequences not counted.
size_t display_width(std::string_view text);

}  // namespace vitrail
