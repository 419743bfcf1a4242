// Writes JSON as text for files and for people, whatever bytes its strings hold.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace vitrail {

// The text of a value, Json or nlohmann::ordered_json. Bytes that are not UTF-8 (names of files may hold any)
// become U+FFFD instead of an exception.
template <typename AnyJson>
std::string json_text(const AnyJson& value, int indent = -1) {
  return value.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

// Null for NaN and infinity, which JSON does not have.
inline nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace vitrail
