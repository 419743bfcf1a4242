#include "cli/option_values.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "train/setting_advice.h"

namespace vitrail::cli {

namespace {
std::string range_text(const OptionSpec& spec) {
  const bool low = std::isfinite(spec.least), high = std::isfinite(spec.most);
  if (low && high) return strf(" from %.15g to %.15g", spec.least, spec.most);
  if (low) return strf(" of at least %.15g", spec.least);
  return high ? strf(" of at most %.15g", spec.most) : "";
}

bool valid_number(const OptionSpec& spec, const std::string& text) {
  const auto integer = parse_integer(text);
  if (spec.kind == ValueKind::kInteger && !integer) return false;
  const auto number = parse_number(text);
  return number && *number >= spec.least && *number <= spec.most;
}

// Returns "a whole number from 1 to 100", "a number" or "true or false"; empty for what is a text.
std::string expected_of(const OptionSpec& spec) {
  const bool is_field = spec.choices == std::vector<std::string>{"true", "false"};
  if (spec.kind == ValueKind::kFlag || is_field) return "true or false";
  if (spec.kind == ValueKind::kText) return "";
  return (spec.kind == ValueKind::kInteger ? "a whole number" : "a number") + range_text(spec);
}

FieldSpec field_of(const OptionSpec& spec) {
  return {.key = spec.name,
          .help = spec.help,
          .kind = spec.repeated ? FieldKind::kTexts : FieldKind::kText,
          .choices = spec.choices,
          .usual = spec.usual.empty() ? spec.fallback : spec.usual};
}

}  // namespace

std::string advice_for(const OptionSpec& spec) {
  return field_advice(field_of(spec));
}

Error with_advice(const Error& error, const std::vector<OptionSpec>& specs, const Options& options) {
  std::vector<FieldSpec> fields;
  fields.reserve(specs.size());
  for (const OptionSpec& spec : specs) fields.push_back(field_of(spec));
  return vitrail::with_advice(
      error, fields, [&](const std::string& name) { return options.given_beyond(name, Origin::kDefault); });
}

void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind) {
  const bool numeric = spec.kind == ValueKind::kInteger || spec.kind == ValueKind::kNumber;
  if ((spec.kind == ValueKind::kFlag && !parse_bool(text)) || (numeric && !valid_number(spec, text)))
    throw Error(kind, strf("%s expects %s, not '%s'", place.c_str(), expected_of(spec).c_str(), text.c_str()),
                advice_for(spec));
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
    throw Error(
        kind,
        strf("%s expects one of %s, not '%s'", place.c_str(), join(spec.choices, ", ").c_str(), text.c_str()),
        did_you_mean(text, spec.choices, "", advice_for(spec)));
}

// Lists and what may be a word too ("auto") are texts to begin with.
void require_unquoted(const OptionSpec& spec, const Setting& setting, const std::string& place) {
  const std::string expected = expected_of(spec);
  if (!setting.quoted || spec.repeated || expected.empty()) return;
  throw Error(ErrorKind::kConfig,
              strf("%s expects %s, not the text %s", place.c_str(), expected.c_str(),
                   quoted(setting.values.front()).c_str()),
              "the value without quotes; " + advice_for(spec));
}

}  // namespace vitrail::cli
