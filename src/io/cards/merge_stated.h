// Merges what one config states of a model into its card: fields that the tensors know are compared, the
// others taken over. It is private to card.cpp; knows one config at a time and no order of them.
#pragma once

#include <map>
#include <string>

#include "io/config_json.h"
#include "io/dialects/infer.h"

namespace vitrail {

// A field and its value as people say them who know the published model and not this program's settings.
inline std::string spoken(std::string_view field, const Json& value) {
  if (field == "norm_place")
    return value == "after_pool"    ? "the last layernorm is after pooling"
           : value == "before_pool" ? "the last layernorm is before pooling"
                                    : "there is no last layernorm";
  if (field == "patch_width")
    return value == 0 ? "patches are square" : "patches are " + value.dump() + " pixels wide";
  if (field == "pos_for_prefix")
    return value == true ? "the class token has a position" : "the class token has none";
  if (field == "pre_logits") return value == true ? "there is a layer before the head" : "there is none";
  return std::string(field) + " is " + value.dump();
}
inline std::string spoken_value(std::string_view field, const Json& value) {
  const std::string whole = spoken(field, value), plain = std::string(field) + " is ";
  return whole.starts_with(plain) ? whole.substr(plain.size()) : whole;
}

// Compares the fields that both know and copies the others.
struct MergeStated {
  const Json& stated;
  const Facts& facts;
  const std::string& origin;
  std::map<std::string, std::string>* origins;

  template <typename T>
  void operator()(const char* name, T& field, const char*) {
    const auto at = stated.find(name);
    if (at == stated.end()) return;
    T value = field;
    json_assign(*at, origin, name, &value);
    VT_REQUIRE(!facts.known.contains(name) || value == field, ErrorKind::kData,
               "%s says %s, but the tensors say %s", origin.c_str(), spoken(name, json_value(value)).c_str(),
               spoken_value(name, json_value(field)).c_str());
    field = value;
    (*origins)[name] = origin;
  }
};

}  // namespace vitrail
