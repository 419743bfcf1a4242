#include "cli/setting_advice.h"

#include <algorithm>

#include <cctype>

#include "base/fields.h"

namespace vitrail::cli {

namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// Returns where `name` stands in `text` as a word of its own; npos when it does not.
size_t find_name(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    // A full stop after the name may end a sentence.
    const bool ends = end == text.size() || !in_name(text[end]) ||
                      (text[end] == '.' && (end + 1 == text.size() || !in_name(text[end + 1])));
    if (ends && (at == 0 || !in_name(text[at - 1]))) return at;
  }
  return text.npos;
}

// Returns the setting that `text` names first, each called what `name_of` returns; null when it names none.
template <typename NameOf>
const OptionSpec* first_named(const std::string& text, const std::vector<OptionSpec>& specs,
                              NameOf&& name_of) {
  const OptionSpec* found = nullptr;
  size_t first = text.npos;
  for (const OptionSpec& spec : specs) {
    const std::string name = name_of(spec);
    const size_t at = name.empty() ? text.npos : find_name(text, name);
    if (at < first) found = &spec;
    first = std::min(first, at);
  }
  return found;
}

// Returns the name under which error messages know a setting that stands for several others.
std::string stands_for(const std::string& name, const std::string& text) {
  if (name != "model.image") return name;
  return find_name(text, "model.image_width") == text.npos ? "model.image_height" : "model.image_width";
}

const OptionSpec* spoken_of(const std::string& text, const std::vector<OptionSpec>& specs,
                            const Options& options) {
  const auto given = [&](const OptionSpec& spec) {
    return options.declared(spec.name) && options.origin(spec.name) > Origin::kDefault;
  };
  const auto dotted = [](const OptionSpec& spec) { return spec.name.find('.') != spec.name.npos; };
  const auto whole = [&](const OptionSpec& spec) { return dotted(spec) && given(spec) ? spec.name : ""; };
  const auto other = [&](const OptionSpec& spec) { return given(spec) ? stands_for(spec.name, text) : ""; };
  const auto last_part = [&](const OptionSpec& spec) {
    return given(spec) ? spec.name.substr(spec.name.rfind('.') + 1) : "";
  };
  // "preprocess: the width is" names the width of this section and no other.
  const auto of_section = [&](const OptionSpec& spec) {
    const std::string section = spec.name.substr(0, spec.name.find('.'));
    return dotted(spec) && find_name(text, section) != text.npos ? last_part(spec) : "";
  };
  const auto by_default = [&](const OptionSpec& spec) {
    return dotted(spec) && !(spec.usual.empty() && spec.choices.empty()) ? spec.name : "";
  };
  const OptionSpec* found = first_named(text, specs, whole);
  if (!found) found = first_named(text, specs, other);
  if (!found) found = first_named(text, specs, of_section);
  if (!found) found = first_named(text, specs, last_part);
  return found ? found : first_named(text, specs, by_default);
}

}  // namespace

std::string advice_for(const OptionSpec& spec) {
  return field_advice({.key = spec.name,
                       .help = spec.help,
                       .kind = spec.repeated ? FieldKind::kTexts : FieldKind::kText,
                       .choices = spec.choices,
                       .usual = spec.usual.empty() ? spec.fallback : spec.usual});
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
