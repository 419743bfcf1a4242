#include "cli/config_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/text.h"

namespace vitrail::cli {

namespace {
constexpr size_t kMaxBytes = 1 << 20;

std::string scalar_text(const Json& value, const std::string& key) {
  VT_REQUIRE(!value.is_null(), ErrorKind::kConfig, "the key %s is null; leave it out instead",
             quoted(key).c_str());
  VT_REQUIRE(value.is_primitive(), ErrorKind::kConfig,
             "the array %s holds an object or an array; only plain values are understood",
             quoted(key).c_str());
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

Setting setting_of(const std::string& key, const Json& value, const std::string& place) {
  Setting setting{key, {}, place};
  if (!value.is_array())
    setting.values.push_back(scalar_text(value, key));
  else
    for (const Json& element : value) setting.values.push_back(scalar_text(element, key));
  return setting;
}
}  // namespace

std::vector<Setting> parse_config(std::string_view text, const std::string& place) {
  const JsonLimits limits{.max_bytes = kMaxBytes, .comments = true, .kind = ErrorKind::kConfig};
  const Json root = parse_json(text, place, limits);
  VT_REQUIRE(root.is_object(), ErrorKind::kConfig, "%s: a config file is one object: { \"key\": value }",
             place.c_str());
  std::vector<Setting> settings;
  std::vector<std::pair<std::string, const Json*>> open = {{"", &root}};
  while (!open.empty()) {
    const std::string prefix = open.back().first;
    const Json& object = *open.back().second;
    open.pop_back();
    for (auto member = object.begin(); member != object.end(); ++member) {
      const std::string key = prefix + member.key();
      if (member->is_object())
        open.emplace_back(key + ".", &*member);
      else
        settings.push_back(with_context(place, [&] { return setting_of(key, *member, place); }));
    }
  }
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

}  // namespace vitrail::cli
