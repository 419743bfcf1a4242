#include "base/config_file.h"

#include <set>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/text.h"

namespace vitrail {

namespace {
constexpr size_t kMaxBytes = 1 << 20;

std::string scalar_text(const Json& value, const std::string& key) {
  if (value.is_null())
    throw Error(ErrorKind::kConfig, strf("the key %s is null; expected a value", quoted(key).c_str()),
                "leave the key out for its default");
  if (!value.is_primitive())
    throw Error(ErrorKind::kConfig,
                strf("the array %s holds %s; expected plain values", quoted(key).c_str(), value.type_name()),
                strf("\"%s\": [1, 2]", key.c_str()));
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

Setting setting_of(const std::string& key, const Json& value, const std::string& place) {
  Setting setting{key, {}, place};
  for (const Json& element : value.is_array() ? value : Json::array({value})) {
    setting.values.push_back(scalar_text(element, key));
    setting.quoted |= element.is_string();
  }
  return setting;
}

// JSON refuses a key twice in one object; "a.b" may also stand beside "a": {"b": ...}.
void require_distinct(const std::vector<Setting>& settings, const std::string& place) {
  std::set<std::string_view> seen;
  for (const Setting& setting : settings)
    if (!seen.insert(setting.key).second)
      throw Error(ErrorKind::kConfig,
                  strf("%s: the key %s stands twice", place.c_str(), quoted(setting.key).c_str()),
                  "leave one of them out");
}
}  // namespace

std::vector<Setting> parse_config(std::string_view text, const std::string& place) {
  const JsonLimits limits{.max_bytes = kMaxBytes, .comments = true, .kind = ErrorKind::kConfig};
  const Json root = parse_json(text, place, limits);
  if (!root.is_object())
    throw Error(
        ErrorKind::kConfig,
        strf("%s holds %s; expected a config file, which is one object", place.c_str(), root.type_name()),
        "{ \"key\": value }");
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, const Json*>> open = {{"", &root}};
  while (!open.empty()) {
    const std::string prefix = open.back().first;
    const Json& object = *open.back().second;
    open.pop_back();
    for (auto member = object.begin(); member != object.end(); ++member) {
      const std::string key = prefix + member.key();
      if (member->is_object() && member->empty())
        settings.push_back({.key = key, .values = {}, .place = place, .section = true});
      else if (member->is_object())
        open.emplace_back(key + ".", &*member);
      else
        settings.push_back(with_context(place, [&] { return setting_of(key, *member, place); }));
    }
  }
  require_distinct(settings, place);
  return settings;
}

std::vector<Setting> read_config_file(const std::string& path) {
  std::string text;
  try {
    text = read_file(path, kMaxBytes);
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, error.message(), "check what is given to --config");
  }
  return parse_config(text, path);
}

}  // namespace vitrail
