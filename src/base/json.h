// Strict JSON for files and requests that others wrote: bounded size and depth, no duplicate keys, no NaN, no
// integers that would lose digits, valid UTF-8; an error names line and column. Must not know what any key
// means.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace vitrail {

using Json = nlohmann::json;

struct JsonLimits {
  size_t max_bytes = size_t{16} << 20;
  int max_depth = 64;
  bool comments = false;              // accept // and /* */
  ErrorKind kind = ErrorKind::kData;  // the kind of the errors thrown
};

// Receives a document event by event, for headers too large to hold as a tree. A consumer throws Error to
// reject its content; the scanner adds the place.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void scalar(Json value) = 0;  // null, bool, number or string
  virtual void key(std::string name) = 0;
  virtual void begin_object() = 0;
  virtual void begin_array() = 0;
  virtual void end() = 0;  // closes the innermost object or array
};

// The consumer must refuse duplicate keys; every other rule above is checked here.
void scan_json(std::string_view text, const std::string& source_name, const JsonLimits& limits,
               JsonEvents& events);

Json parse_json(std::string_view text, const std::string& source_name, const JsonLimits& limits = {});

}  // namespace vitrail
