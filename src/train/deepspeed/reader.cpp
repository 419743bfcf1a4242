#include "train/deepspeed/reader.h"

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "base/text.h"
#include "train/config_io.h"

namespace vitrail::deepspeed {

namespace {

std::pair<std::string, std::string> section_and_name(const std::string& key) {
  const size_t dot = key.find('.');
  return {key.substr(0, dot), key.substr(dot + 1)};
}

std::string value_text(const Json& value) {
  return value.is_object() ? "an object" : value.is_array() ? "an array" : name_text(json_text(value));
}

}  // namespace

std::string limit_text(double limit) {
  return strf(limit == std::floor(limit) && std::abs(limit) <= kExact ? "%.0f" : "%g", limit);
}

std::string name_text(const std::string& name) {
  return name.size() > 60 ? quoted(name) : shown(name);
}

Reader::Reader(const Json& file, std::string place, const DeepSpeedBase& base)
    : file_(file), place_(std::move(place)), base_(base), settings_(to_json(base.config)) {}

const Json* Reader::find(std::string_view path) const {
  const Json* value = &file_;
  for (const std::string_view name : split(path, '.')) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(name);
    if (found == value->end() || found->is_null()) return nullptr;
    value = &*found;
  }
  return value;
}

bool Reader::is_auto(std::string_view path) const {
  const Json* value = find(path);
  return value && value->is_string() && value->get_ref<const std::string&>() == "auto";
}

void Reader::wrong(const std::string& path, const std::string& expected) const {
  const Json* value = find(path);
  throw Error(
      ErrorKind::kConfig,
      strf("%s: %s is %s", place_.c_str(), path.c_str(), value ? value_text(*value).c_str() : "missing"),
      "expected " + expected);
}

void Reader::note_auto(const std::string& path, const std::string& key) {
  note(path, strf("%s is \"auto\": %s is %s, %s", path.c_str(), key.c_str(), json_text(value_of(key)).c_str(),
                  given_by(key) == GivenBy::kDefault ? "the default" : "as given"));
}

std::optional<double> Reader::checked(const std::string& path, const std::string& key, Limits limits,
                                      bool whole) {
  const Json* value = find(path);
  if (!value) return std::nullopt;
  if (is_auto(path) && !key.empty()) {
    note_auto(path, key);
    return value_of(key).get<double>();
  }
  const double number = value->is_number() ? value->get<double>() : NAN;
  const bool fits =
      number >= limits.least && number <= limits.most && (!whole || number == std::floor(number));
  if (!fits)
    wrong(path, strf("a %s from %s to %s", whole ? "whole number" : "number",
                     limit_text(limits.least).c_str(), limit_text(limits.most).c_str()) +
                    (key.empty() ? "" : " or \"auto\""));
  return number;
}

std::optional<double> Reader::number(const std::string& path, const std::string& key, Limits limits) {
  return checked(path, key, limits, false);
}

std::optional<int64_t> Reader::integer(const std::string& path, const std::string& key, Limits limits) {
  const auto value = checked(path, key, limits, true);
  return value ? std::optional<int64_t>(static_cast<int64_t>(*value)) : std::nullopt;
}

std::optional<bool> Reader::flag(const std::string& path, const std::string& key) {
  const Json* value = find(path);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  if (!is_auto(path) || key.empty()) wrong(path, "true or false");
  note_auto(path, key);
  return value_of(key).get<bool>();
}

std::string Reader::word(const std::string& path) {
  const Json* value = find(path);
  if (!value) return {};
  if (!value->is_string()) wrong(path, "a text");
  return value->get<std::string>();
}

void Reader::take_number(const std::string& path, const std::string& key, Limits limits) {
  if (const auto value = number(path, key, limits)) set(key, *value, path);
}

void Reader::take_number(const std::string& path, const std::string& key, Limits limits, double otherwise) {
  set(key, number(path, key, limits).value_or(otherwise), path);
}

void Reader::take_integer(const std::string& path, const std::string& key, Limits limits) {
  if (const auto value = integer(path, key, limits)) set(key, *value, path);
}

void Reader::take_flag(const std::string& path, const std::string& key) {
  if (const auto value = flag(path, key)) set(key, *value, path);
}

Json Reader::value_of(const std::string& key) const {
  const auto [section, name] = section_and_name(key);
  if (changed_.contains(section) && changed_[section].contains(name)) return changed_[section][name];
  return settings_.at(section).at(name);
}

GivenBy Reader::given_by(const std::string& key) const {
  return base_.given_by ? base_.given_by(key) : GivenBy::kDefault;
}

bool Reader::has_setting(const std::string& key) {
  static const std::vector<FieldSpec> fields = train_fields();
  return std::any_of(fields.begin(), fields.end(), [&](const FieldSpec& field) { return field.key == key; });
}

void Reader::set(const std::string& key, Json value, const std::string& path) {
  const auto [section, name] = section_and_name(key);
  const Json& before = settings_.at(section).at(name);
  const bool differs = before != value;
  const std::string was = json_text(before), now = json_text(value);
  const char* left_out = find(path) ? "" : " (DeepSpeed's default)";
  const GivenBy giver = given_by(key);
  if (differs && giver == GivenBy::kCommand) {
    note(path, strf("%s %s%s gives way to %s=%s of the command line", path.c_str(), now.c_str(), left_out,
                    key.c_str(), was.c_str()));
    return;
  }
  if (differs && giver == GivenBy::kConfig)
    note(path, strf("%s %s%s replaces %s=%s of the config", path.c_str(), now.c_str(), left_out, key.c_str(),
                    was.c_str()));
  changed_[section][name] = std::move(value);
}

TrainConfig Reader::config() const {
  TrainConfig config = base_.config;
  take_settings(JsonSettings(changed_, place_), config);
  return config;
}

void Reader::note(const std::string& path, std::string text) {
  result_.notes.push_back({path, std::move(text)});
}

void Reader::refuse(const std::string& path, const std::string& why) {
  result_.refused.push_back({path, strf("%s: %s", path.c_str(), why.c_str())});
}

DeepSpeedReading Reader::finish() {
  result_.config = config();
  return std::move(result_);
}

}  // namespace vitrail::deepspeed
