#include "base/fields.h"

#include <algorithm>
#include <cmath>

#include "base/json_text.h"

namespace vitrail {

namespace {

std::string shown_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

[[noreturn]] void refuse(const FieldSpec& spec, const Json& value, const std::string& place,
                         const std::string& expected) {
  const std::string found = shown_value(value);
  throw Error(
      ErrorKind::kConfig, strf("%s expects %s, not '%s'", place.c_str(), expected.c_str(), found.c_str()),
      spec.choices.empty() ? field_advice(spec) : did_you_mean(found, spec.choices, "", field_advice(spec)));
}

void check_number(const FieldSpec& spec, const Json& value, const std::string& place) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(spec, value, place, "a number");
}

void check_text(const FieldSpec& spec, const Json& value, const std::string& place) {
  if (!value.is_string()) refuse(spec, value, place, "a text");
}

bool is_choice(const FieldSpec& spec, const std::string& name) {
  return std::ranges::find(spec.choices, name) != spec.choices.end() ||
         std::ranges::any_of(spec.former, [&](const FormerName& former) { return name == former.was; });
}

bool fits_integer(const Json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
}

}  // namespace

std::string former_name_note(const std::string& key, const FormerName& former) {
  return strf("%s=%s is now %s=%s", key.c_str(), former.was, key.c_str(), former.now);
}

std::string field_advice(const FieldSpec& spec) {
  const bool several = spec.several() || spec.usual.find(", ") != std::string::npos;
  std::string text;
  if (!spec.choices.empty()) {
    text = "one of " + join(spec.choices, ", ");
  } else if (!spec.usual.empty() && !several) {
    // A flag of the command line has no dot in its name.
    const bool flag = spec.key.find('.') == std::string::npos;
    text = (flag ? "--" + spec.key + " " : spec.key + "=") + spec.usual + ", its default";
  } else {
    text = strf(
        "leave %s out: %s then", spec.key.c_str(),
        spec.usual.empty() ? "what the model or the machine says holds" : (spec.usual + " holds").c_str());
  }
  return spec.help.empty() ? text : text + " (" + spec.help + ")";
}

void check_json(const FieldSpec& spec, const Json& value, const std::string& place) {
  if (value.is_null())
    throw Error(ErrorKind::kConfig, place + " is null; expected a value",
                "leave the key out for its default");
  if (value.is_object() || (value.is_array() && !spec.several()))
    throw Error(ErrorKind::kConfig, strf("%s takes one value, not %s", place.c_str(), value.type_name()),
                field_advice(spec));
  const std::vector<Json> values =
      value.is_array() ? value.get<std::vector<Json>>() : std::vector<Json>{value};
  for (const Json& one : values) {
    switch (spec.kind) {
      case FieldKind::kBool:
        if (!one.is_boolean()) refuse(spec, one, place, "one of true, false");
        break;
      case FieldKind::kChoice:
        if (!one.is_string() || !is_choice(spec, one.get_ref<const std::string&>()))
          refuse(spec, one, place, "one of " + join(spec.choices, ", "));
        break;
      case FieldKind::kInteger:
        if (!fits_integer(one)) refuse(spec, one, place, "a whole number");
        break;
      case FieldKind::kNumber:
      case FieldKind::kNumbers:
        check_number(spec, one, place);
        break;
      case FieldKind::kTexts:
        if (one.is_number()) break;
        [[fallthrough]];
      case FieldKind::kText:
        check_text(spec, one, place);
        break;
    }
  }
}

void require_in_range(const char* key, int64_t value, int64_t least, int64_t most) {
  VT_REQUIRE(value >= least && value <= most, ErrorKind::kConfig, "%s is %lld: expected %lld..%lld", key,
             static_cast<long long>(value), static_cast<long long>(least), static_cast<long long>(most));
}

std::vector<std::string> texts_of(const Json& value) {
  std::vector<std::string> texts;
  for (const Json& one : value.is_array() ? value : Json::array({value})) texts.push_back(shown_value(one));
  return texts;
}

}  // namespace vitrail
