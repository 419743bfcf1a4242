#include "plan/device_reader.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

void refuse_device(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kData, strf("%s is no device file: %s", path.c_str(), why.c_str()),
              "one written by: vitrail bench calibrate --out FILE; docs/device-files.md has the format");
}

Json DeviceReader::member(const char* name) const {
  Json value = object.is_object() ? object.value(name, Json()) : Json();
  if (value.is_null()) refuse_device(path, strf("'%s%s' is missing", inside.c_str(), name));
  return value;
}

std::string DeviceReader::text(const char* name) const {
  const Json value = member(name);
  if (!value.is_string()) refuse_device(path, strf("'%s%s' is no text", inside.c_str(), name));
  return value.get<std::string>();
}

double DeviceReader::number(const char* name, Bounds bounds) const {
  const Json value = member(name);
  if (!value.is_number()) refuse_device(path, strf("'%s%s' is no number", inside.c_str(), name));
  const auto number = value.get<double>();
  if (!(number >= bounds.least && number <= bounds.most))
    refuse_device(path, strf("'%s%s' is %g, and must lie between %g and %g", inside.c_str(), name, number,
                             bounds.least, bounds.most));
  return number;
}

int64_t DeviceReader::count(const char* name, Bounds bounds) const {
  const double value = number(name, bounds);
  if (value != std::floor(value))
    refuse_device(path, strf("'%s%s' is no whole number", inside.c_str(), name));
  return static_cast<int64_t>(value);
}

Json DeviceReader::list(const char* name) const {
  Json value = member(name);
  if (!value.is_array() || value.empty())
    refuse_device(path, strf("'%s%s' is no list, or an empty one", inside.c_str(), name));
  return value;
}

void DeviceReader::only(std::initializer_list<const char*> names) const {
  for (const auto& member : object.items())
    if (std::find(names.begin(), names.end(), member.key()) == names.end())
      refuse_device(
          path, strf("it has '%s%s', which no device file has", inside.c_str(), shown(member.key()).c_str()));
}

}  // namespace vitrail
