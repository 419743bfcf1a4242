// Rows of tests/golden/train, and configs read from them by their field lists.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "base/enum_names.h"
#include "base/file.h"
#include "base/json.h"
#include "source_root.h"

namespace vitrail::golden {

inline Json read_train(const std::string& file) {
  const std::string path = VT_SOURCE_DIR "/tests/golden/train/" + file;
  return parse_json(read_file(path, 64 << 20), path, {.max_bytes = 64 << 20});
}

struct FieldReader {
  const Json& object;
  size_t found = 0;

  template <typename T>
  void operator()(const char* name, T& field, const char*) {
    const auto at = object.find(name);
    if (at == object.end()) return;
    ++found;
    if constexpr (std::is_enum_v<T>) {
      field = enum_from_name<T>(at->template get<std::string>()).value();
    } else {
      field = at->template get<T>();
    }
  }
};

// Every key of the object must be a field.
template <typename Config>
Config read_config(const Json& object) {
  Config config;
  FieldReader reader{object};
  Config::fields(config, reader);
  EXPECT_EQ(reader.found, object.size()) << "a key is no field: " << object;
  return config;
}

// Returns the largest |a - b| over max(1, |b|); infinite when anything is missing or NaN.
inline double largest_error(const std::vector<double>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i]));
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  }
  return largest;
}

// Returns the rows of a file as test parameters named by their "name".
struct NamedRow {
  std::string name;
  Json row;
  friend void PrintTo(const NamedRow& row, std::ostream* out) { *out << row.name; }
};
inline std::vector<NamedRow> rows(const std::string& file) {
  std::vector<NamedRow> result;
  for (const Json& row : read_train(file)) result.push_back({row.at("name"), row});
  return result;
}
inline std::string row_name(const ::testing::TestParamInfo<NamedRow>& info) {
  return info.param.name;
}

}  // namespace vitrail::golden
