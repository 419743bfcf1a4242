#include "cli/setting_advice.h"

#include <cctype>

#include "cli/option_values.h"

namespace vitrail::cli {

namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// Where `name` stands in `text` as a word of its own; npos: nowhere.
size_t find_name(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    // A full stop may end a sentence.
    const bool ends = end == text.size() || !in_name(text[end]) ||
                      (text[end] == '.' && (end + 1 == text.size() || !in_name(text[end + 1])));
    if (ends && (at == 0 || !in_name(text[at - 1]))) return at;
  }
  return text.npos;
}

// The setting that `text` names first, by what `name_of` calls it; null: none.
template <typename NameOf>
const OptionSpec* first_named(const std::string& text, const std::vector<OptionSpec>& specs,
                              NameOf&& name_of) {
  const OptionSpec* found = nullptr;
  size_t first = text.npos;
  for (const OptionSpec& spec : specs) {
    const std::string name = name_of(spec);
    const size_t at = name.empty() ? text.npos : find_name(text, name);
    if (at < first) first = at, found = &spec;
  }
  return found;
}

const OptionSpec* spoken_of(const std::string& text, const std::vector<OptionSpec>& specs,
                            const Options& options) {
  const auto whole = [](const OptionSpec& spec) {
    return spec.name.find('.') == spec.name.npos ? "" : spec.name;
  };
  const auto last_part = [&](const OptionSpec& spec) {
    const bool set = options.declared(spec.name) && options.origin(spec.name) > Origin::kDefault;
    return set ? spec.name.substr(spec.name.rfind('.') + 1) : "";
  };
  const OptionSpec* found = first_named(text, specs, whole);
  return found ? found : first_named(text, specs, last_part);
}

}  // namespace

std::string advice_for(const OptionSpec& spec) {
  const std::string& usual = spec.usual.empty() ? spec.fallback : spec.usual;
  std::string text = !spec.choices.empty() ? "one of " + join(spec.choices, ", ")
                     : !usual.empty()      ? strf("%s=%s, its default", spec.name.c_str(), usual.c_str())
                                      : strf("leave %s out: what the model or the machine says holds then",
                                             spec.name.c_str());
  return spec.help.empty() ? text : text + " (" + spec.help + ")";
}

Error with_advice(const Error& error, const std::vector<OptionSpec>& specs, const Options& options) {
  if (error.kind() != ErrorKind::kConfig || !error.hint().empty()) return error;
  const OptionSpec* spec = spoken_of(error.message(), specs, options);
  Error better(error.kind(), error.message(),
               spec ? advice_for(*spec) : "vitrail train --help lists every setting with its default");
  for (auto place = error.context().rbegin(); place != error.context().rend(); ++place) better.at(*place);
  return better;
}

}  // namespace vitrail::cli
