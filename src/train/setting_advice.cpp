#include "train/setting_advice.h"

#include <algorithm>
#include <cctype>

namespace vitrail {

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
const FieldSpec* first_named(const std::string& text, const std::vector<FieldSpec>& settings,
                             NameOf&& name_of) {
  const FieldSpec* found = nullptr;
  size_t first = text.npos;
  for (const FieldSpec& spec : settings) {
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

const FieldSpec* spoken_of(const std::string& text, const std::vector<FieldSpec>& settings,
                           const SettingGiven& given) {
  const auto dotted = [](const FieldSpec& spec) { return spec.key.find('.') != spec.key.npos; };
  const auto whole = [&](const FieldSpec& spec) { return dotted(spec) && given(spec.key) ? spec.key : ""; };
  const auto other = [&](const FieldSpec& spec) { return given(spec.key) ? stands_for(spec.key, text) : ""; };
  const auto last_part = [&](const FieldSpec& spec) {
    return given(spec.key) ? spec.key.substr(spec.key.rfind('.') + 1) : "";
  };
  // "preprocess: the width is" names the width of this section and no other.
  const auto of_section = [&](const FieldSpec& spec) {
    const std::string section = spec.key.substr(0, spec.key.find('.'));
    return dotted(spec) && find_name(text, section) != text.npos ? last_part(spec) : "";
  };
  const auto by_default = [&](const FieldSpec& spec) {
    return dotted(spec) && !(spec.usual.empty() && spec.choices.empty()) ? spec.key : "";
  };
  const FieldSpec* found = first_named(text, settings, whole);
  if (!found) found = first_named(text, settings, other);
  if (!found) found = first_named(text, settings, of_section);
  if (!found) found = first_named(text, settings, last_part);
  return found ? found : first_named(text, settings, by_default);
}

}  // namespace

Error with_advice(const Error& error, const std::vector<FieldSpec>& settings, const SettingGiven& given) {
  if (error.kind() != ErrorKind::kConfig || !error.hint().empty()) return error;
  const FieldSpec* spec = spoken_of(error.message(), settings, given);
  Error better(error.kind(), error.message(),
               spec ? field_advice(*spec) : "vitrail train --help lists every setting with its default");
  for (auto place = error.context().rbegin(); place != error.context().rend(); ++place) better.at(*place);
  return better;
}

}  // namespace vitrail
