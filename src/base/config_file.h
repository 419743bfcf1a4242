// A config file as a flat list of settings: JSON with comments, in which nested objects become dotted keys.
// Knows no keys: its reader checks them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

// One value from a config file or the command line: "a.b" and its texts (several for an array).
struct Setting {
  std::string key;
  std::vector<std::string> values;
  std::string place;     // where it was written, for messages
  bool quoted = false;   // a value is a text of JSON, not a number or a boolean
  bool section = false;  // an object with nothing in it: there is a name alone
};

// Throws Error(kConfig) for text that is not JSON (with line and column), a key given twice, or a file over 1
// MiB.
std::vector<Setting> read_config_file(const std::string& path);
std::vector<Setting> parse_config(std::string_view text, const std::string& place);

}  // namespace vitrail
