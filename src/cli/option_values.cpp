#include "cli/option_values.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "cli/setting_advice.h"

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

}  // namespace

void check_value(const OptionSpec& spec, const std::string& text, const std::string& place, ErrorKind kind) {
  const bool numeric = spec.kind == ValueKind::kInteger || spec.kind == ValueKind::kNumber;
  if (spec.kind == ValueKind::kFlag && !parse_bool(text))
    throw Error(kind, strf("%s expects true or false, not '%s'", place.c_str(), text.c_str()),
                advice_for(spec));
  if (numeric && !valid_number(spec, text))
    throw Error(kind,
                strf("%s expects %s%s, not '%s'", place.c_str(),
                     spec.kind == ValueKind::kInteger ? "a whole number" : "a number",
                     range_text(spec).c_str(), text.c_str()),
                advice_for(spec));
  if (!spec.choices.empty() &&
      std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
    throw Error(
        kind,
        strf("%s expects one of %s, not '%s'", place.c_str(), join(spec.choices, ", ").c_str(), text.c_str()),
        did_you_mean(text, spec.choices, "", advice_for(spec)));
}

}  // namespace vitrail::cli
