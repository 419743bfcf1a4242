// Members of a device file's JSON, read one by one: what is missing, of another type or outside its range is
// refused by name. Knows no device.
#pragma once

#include <initializer_list>
#include <string>

#include "base/json.h"

namespace vitrail {

[[noreturn]] void refuse_device(const std::string& path, const std::string& why);

// The range of a number: what no device has ever been or will soon be lies outside.
struct Bounds {
  double least = 0, most = 0;
};
inline constexpr Bounds kGflopsBounds = {1e-3, 1e7}, kTflopsBounds = {1e-3, 1e5}, kGbpsBounds = {1e-2, 1e6},
                        kMemoryBounds = {1 << 24, 1e15}, kThreadBounds = {1, 4096}, kSizeBounds = {1, 1e18},
                        kSecondBounds = {1e-9, 1e5}, kWattBounds = {0.1, 1e5};

struct DeviceReader {
  const Json& object;
  const std::string& path;
  std::string inside = {};  // "sheet.": where the object lies in the file

  bool has(const char* name) const { return object.is_object() && object.contains(name); }
  Json member(const char* name) const;
  std::string text(const char* name) const;
  double number(const char* name, Bounds bounds) const;
  int64_t count(const char* name, Bounds bounds) const;  // a whole number
  int small(const char* name, Bounds bounds) const { return static_cast<int>(count(name, bounds)); }
  Json list(const char* name) const;
  // Refuses members of other names: a misspelt one would silently be missing.
  void only(std::initializer_list<const char*> names) const;
};

}  // namespace vitrail
