// The option registry: a command declares its options once, as data. That one table drives parsing of argv,
// the environment (VITRAIL_<NAME>) and config files, and the help page. The order of precedence is flag >
// --set > environment > config > default. Knows no command.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_file.h"
#include "base/enum_names.h"

namespace vitrail::cli {

enum class ValueKind { kFlag, kText, kInteger, kNumber };
// Origins of a value, from the weakest to the strongest.
enum class Origin { kDefault, kConfig, kEnvironment, kSet, kFlag };
const char* to_string(Origin origin);

// The declaration of an option. A name with a dot ("model.depth") is a setting: given by --set or in a config
// file.
struct OptionSpec {
  std::string name;
  std::string help;
  ValueKind kind = ValueKind::kText;
  std::string metavar = {};   // "N", "FILE"; empty for flags
  char letter = 0;            // short form, 0 for none
  std::string fallback = {};  // the default, as text; empty: none
  std::vector<std::string> choices = {};
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool repeated = false;     // may be given several times; the values add up
  std::string implied = {};  // the value of --name alone; another one needs --name=VALUE
  std::string usual = {};    // for the help page: what holds where nothing is given
  // Former names of the option and of its choices: still accepted, and reported once on use.
  std::string former_name = {};
  std::vector<FormerName> former_choices = {};
};

struct PositionalSpec {
  std::string metavar;  // "FILE", "IMAGE..."
  std::string help;
  size_t least = 0;
  size_t most = 0;
};

struct ExampleSpec {
  std::string command;  // after "vitrail "
  std::string does;
};

struct CommandSpec {
  std::string name;  // "inspect", "bench infer"
  std::string summary;
  std::vector<ExampleSpec> examples;
  std::vector<OptionSpec> options;  // its own; an option of the same name as a common one replaces it
  std::vector<PositionalSpec> positionals = {};
  // Runs a model in --dtype: a type that the device does not have is refused before anything is read.
  bool infers = false;
};

// Returns the options that every command has; --help is among them.
const std::vector<OptionSpec>& common_options();

// Returns the command's own options, then the common ones it does not replace.
std::vector<OptionSpec> all_options(const CommandSpec& command);

class Options {
 public:
  bool declared(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool flag(std::string_view name) const;
  bool given(std::string_view name) const;               // has a value, be it the default
  const std::string& text(std::string_view name) const;  // empty when not given
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::vector<std::string>& list(std::string_view name) const;
  Origin origin(std::string_view name) const;
  // Returns whether it is an option of the command, with a value from beyond a source: kDefault, kConfig.
  bool given_beyond(std::string_view name, Origin source) const {
    return declared(name) && given(name) && origin(name) > source;
  }
  Options with(std::string_view name, std::string text) const;  // the same with another value

  // Positional arguments in order, those of all PositionalSpecs together.
  const std::vector<std::string>& positionals() const { return positionals_; }
  const std::string& positional(size_t index) const;

  // One line for each former name that was used.
  const std::vector<std::string>& former_names() const { return former_names_; }

 private:
  friend class Parser;
  struct Value {
    ValueKind kind = ValueKind::kText;
    std::vector<std::string> texts;
    Origin origin = Origin::kDefault;
  };
  const Value& value(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> positionals_, former_names_;
};

using Environment = std::function<const char*(const std::string& name)>;
using ConfigReader = std::function<std::vector<Setting>(const std::string& path)>;

// Throws Error(kUsage) or Error(kConfig) with the nearest valid name. `arguments` come after the command's
// name. When --help is among them, nothing else is checked and the result has flag("help").
Options parse_options(const CommandSpec& command, std::span<const std::string> arguments,
                      const Environment& environment, const ConfigReader& read_config);

// Returns "VITRAIL_TOP_K" for "top-k".
std::string environment_name(std::string_view option);

}  // namespace vitrail::cli
