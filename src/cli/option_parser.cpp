// Reads arguments, --set and config files into the options of a command; says what is wrong with them.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/write_error.h"
#include "cli/option_values.h"
#include "cli/options.h"

namespace vitrail::cli {

// Layers may be applied in any order: a value of a stronger origin wins.
class Parser {
 public:
  explicit Parser(const CommandSpec& command) : command_(command), specs_(all_options(command)) {
    for (const OptionSpec& spec : specs_) result_.values_[spec.name].kind = spec.kind;
  }

  Options run(std::span<const std::string> arguments, const Environment& environment,
              const ConfigReader& read) {
    if (asks_for_help(arguments)) {
      store(*find(std::string_view("help")), {"true"}, Origin::kFlag);
      return std::move(result_);
    }
    parse_arguments(arguments);
    parse_environment(environment);
    for (const std::string& assignment : result_.list("set")) apply_assignment(assignment);
    if (result_.given("config"))
      for (const Setting& setting : read(result_.text("config"))) apply_setting(setting, Origin::kConfig);
    for (const OptionSpec& spec : specs_)
      if (!spec.fallback.empty()) store(spec, {spec.fallback}, Origin::kDefault);
    check_positionals();
    std::vector<std::pair<std::string, std::string>> outputs;
    for (const char* name : {"out", "html", "trace", "points", "figure", "report", "files"})
      if (result_.declared(name)) outputs.emplace_back(std::string("--") + name, result_.text(name));
    require_different_paths(outputs);
    return std::move(result_);
  }

 private:
  // Treats "top_k" as "top-k": configs use underscores, flags use dashes.
  static std::string with_dashes(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
  }
  const OptionSpec* find(std::string_view name) const {
    for (const OptionSpec& spec : specs_)
      if (with_dashes(spec.name) == with_dashes(name)) return &spec;
    for (const OptionSpec& spec : specs_)
      if (!spec.former_name.empty() && with_dashes(spec.former_name) == with_dashes(name)) return &spec;
    return nullptr;
  }
  const OptionSpec* find(char letter) const {
    for (const OptionSpec& spec : specs_)
      if (spec.letter == letter) return &spec;
    return nullptr;
  }
  // Suggests the option that is nearest to a wrong name; near a former name, the present one.
  std::string suggestion(const std::string& wrong, const std::string& prefix) const {
    std::vector<std::string> names;
    for (const OptionSpec& spec : specs_) names.push_back(spec.name);
    for (const OptionSpec& spec : specs_)
      if (!spec.former_name.empty()) names.push_back(spec.former_name);
    const OptionSpec* near = find(nearest_name(wrong, names));
    return near ? strf("did you mean %s%s?", prefix.c_str(), near->name.c_str()) : see_help();
  }
  std::string see_help() const { return strf("vitrail %s --help lists every option", command_.name.c_str()); }

  // A mistake in another argument must not hide the help page.
  static bool asks_for_help(std::span<const std::string> arguments) {
    for (const std::string& word : arguments) {
      if (word == "--") return false;
      if (word == "--help" || word == "-h") return true;
    }
    return false;
  }

  void note_former_name(const OptionSpec& spec, const std::string& name, const std::string& prefix) {
    if (!spec.former_name.empty() && with_dashes(name) == spec.former_name)
      note_former(prefix + name, prefix + spec.name);
  }
  void note_former(const std::string& was, const std::string& now) {
    std::string line = strf("%s is now %s", was.c_str(), now.c_str());
    auto& lines = result_.former_names_;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }

  // Returns a choice by its present name.
  std::string current(const OptionSpec& spec, const std::string& text) {
    for (const FormerName& former : spec.former_choices) {
      if (text != former.was) continue;
      note_former(spec.name + "=" + text, spec.name + "=" + former.now);
      return former.now;
    }
    return text;
  }

  // Stores the values of one layer, unless a stronger layer has set the option. The values of repeated flags
  // add up.
  void store(const OptionSpec& spec, std::vector<std::string> texts, Origin origin) {
    Options::Value& value = result_.values_[spec.name];
    if (!value.texts.empty() && value.origin > origin) return;
    if (!spec.repeated || value.origin != origin) value.texts.clear();
    value.texts.insert(value.texts.end(), texts.begin(), texts.end());
    value.origin = origin;
  }

  void parse_arguments(std::span<const std::string> arguments) {
    arguments_ = arguments;
    for (next_ = 0; next_ < arguments_.size();) {
      const std::string& word = arguments_[next_++];
      if (word == "--") {
        result_.positionals_.insert(result_.positionals_.end(), arguments_.begin() + static_cast<long>(next_),
                                    arguments_.end());
        return;
      }
      if (word.starts_with("--"))
        parse_long(word);
      else if (word.size() > 1 && word[0] == '-')
        parse_letters(word);
      else
        result_.positionals_.push_back(word);
    }
  }

  void parse_long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const OptionSpec* spec = find(name);
    if (!spec)
      throw Error(ErrorKind::kUsage,
                  strf("vitrail %s has no option --%s", command_.name.c_str(), name.c_str()),
                  suggestion(name, "--"));
    note_former_name(*spec, name, "--");
    if (equals != std::string::npos)
      accept(*spec, word.substr(equals + 1), "--" + name);
    else
      accept(*spec, value_after(*spec, "--" + name), "--" + name);
  }

  // Parses "-k 5", "-k5" and "-qv": flags may be combined, and the first option with a value takes the rest
  // of the word.
  void parse_letters(const std::string& word) {
    for (size_t at = 1; at < word.size(); ++at) {
      const std::string shown = {'-', word[at]};
      const OptionSpec* spec = find(word[at]);
      if (!spec)
        throw Error(ErrorKind::kUsage,
                    strf("vitrail %s has no option %s", command_.name.c_str(), shown.c_str()), see_help());
      const bool rest = spec->kind != ValueKind::kFlag && at + 1 < word.size();
      accept(*spec, rest ? word.substr(at + 1) : value_after(*spec, shown), shown);
      if (rest) return;
    }
  }

  std::string value_after(const OptionSpec& spec, const std::string& shown) {
    if (spec.kind == ValueKind::kFlag) return "true";
    if (!spec.implied.empty()) return spec.implied;
    if (next_ >= arguments_.size())
      throw Error(ErrorKind::kUsage,
                  strf("%s needs a value: %s %s", shown.c_str(), shown.c_str(), spec.metavar.c_str()),
                  see_help());
    return arguments_[next_++];
  }

  void accept(const OptionSpec& spec, const std::string& given, const std::string& place) {
    const std::string text = current(spec, given);
    check_value(spec, text, place, ErrorKind::kUsage);
    store(spec, {text}, Origin::kFlag);
  }

  void parse_environment(const Environment& environment) {
    for (const OptionSpec& spec : specs_) {
      if (spec.name == "set" || spec.name == "help") continue;
      std::string name = environment_name(spec.name);
      const char* given = environment(name);
      if (!given && !spec.former_name.empty()) {
        const std::string former = environment_name(spec.former_name);
        given = environment(former);
        if (given) {
          note_former(former, name);
          name = former;
        }
      }
      if (!given || (*given == '\0' && spec.kind != ValueKind::kFlag)) continue;
      const std::string text = current(spec, given);
      check_value(spec, text, name + " (environment)", ErrorKind::kUsage);
      store(spec, {text}, Origin::kEnvironment);
    }
  }

  void apply_assignment(const std::string& assignment) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw Error(ErrorKind::kUsage, strf("--set expects KEY=VALUE, not '%s'", assignment.c_str()),
                  see_help());
    apply_setting({assignment.substr(0, equals), {assignment.substr(equals + 1)}, "--set"}, Origin::kSet);
  }

  // Refuses an empty section that no setting of the command has.
  void check_section(const Setting& setting) const {
    const std::string own = dotted_name();
    std::vector<std::string> names = {own};
    for (const OptionSpec& spec : specs_) names.push_back(spec.name);
    const std::set<std::string> sections = section_names(names);
    const bool below_own = setting.key.starts_with(own) && sections.contains(setting.key.substr(own.size()));
    if (below_own || sections.contains(setting.key)) return;
    if (const OptionSpec* spec = find(std::string_view(setting.key)))
      throw Error(ErrorKind::kConfig,
                  strf("%s: %s takes one value, not an object", setting.place.c_str(), setting.key.c_str()),
                  advice_for(*spec));
    names.assign(sections.begin(), sections.end());
    refuse_key(setting, did_you_mean(setting.key, names, "", suggestion(setting.key, "")));
  }
  [[noreturn]] void refuse_key(const Setting& setting, const std::string& hint) const {
    throw Error(ErrorKind::kConfig,
                strf("%s: vitrail %s has no key '%s'", setting.place.c_str(), command_.name.c_str(),
                     setting.key.c_str()),
                hint);
  }
  // Returns "bench.infer.", under which a config file may hold the settings of the command.
  std::string dotted_name() const {
    std::string name = command_.name + ".";
    std::replace(name.begin(), name.end(), ' ', '.');
    return name;
  }

  // Applies a setting whose key is an option's name, alone or under the command's name.
  void apply_setting(const Setting& setting, Origin origin) {
    if (setting.section) return check_section(setting);
    std::string key = setting.key;
    const std::string own = dotted_name();
    const bool section = std::any_of(specs_.begin(), specs_.end(),
                                     [&](const OptionSpec& spec) { return spec.name.starts_with(own); });
    if (!find(key) && key.starts_with(own) && (!section || find(key.substr(own.size()))))
      key.erase(0, own.size());
    const OptionSpec* spec = find(key);
    const bool allowed = spec && key != "config" && key != "set" && key != "help";
    if (!allowed) refuse_key(setting, suggestion(key, ""));
    note_former_name(*spec, key, "");
    const std::string place = setting.place + ": " + setting.key;
    if (setting.values.size() != 1 && !spec->repeated)
      throw Error(ErrorKind::kConfig,
                  strf("%s takes one value, not %zu", place.c_str(), setting.values.size()),
                  advice_for(*spec));
    require_unquoted(*spec, setting, place);
    std::vector<std::string> values;
    for (const std::string& text : setting.values) values.push_back(current(*spec, text));
    for (const std::string& text : values) check_value(*spec, text, place, ErrorKind::kConfig);
    store(*spec, std::move(values), origin);
  }

  void check_positionals() const {
    size_t least = 0, most = 0;
    std::string shape;
    for (const PositionalSpec& spec : command_.positionals) {
      least += spec.least;
      most = spec.most > SIZE_MAX - most ? SIZE_MAX : most + spec.most;
      shape += " " + spec.metavar;
    }
    const auto& words = result_.positionals_;
    if (words.size() < least)
      throw Error(ErrorKind::kUsage, strf("vitrail %s needs%s", command_.name.c_str(), shape.c_str()),
                  see_help());
    if (words.size() > most)
      throw Error(ErrorKind::kUsage,
                  strf("vitrail %s does not take '%s'", command_.name.c_str(), words[most].c_str()),
                  see_help());
  }

  const CommandSpec& command_;
  std::vector<OptionSpec> specs_;
  std::span<const std::string> arguments_;
  size_t next_ = 0;
  Options result_;
};

Options parse_options(const CommandSpec& command, std::span<const std::string> arguments,
                      const Environment& environment, const ConfigReader& read_config) {
  return Parser(command).run(arguments, environment, read_config);
}

}  // namespace vitrail::cli
