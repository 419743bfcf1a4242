// Small helpers for text that comes from outside and goes into messages: quoting, UTF-8 check, and the
// nearest known name. Knows nothing of what the names mean.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail {

// quoted(text): `text` in double quotes, what is not printable as \xNN or \uNNNN, cut after about 80 bytes.
// An object, not a function, so that argument-dependent lookup never finds std::quoted instead.
struct Quoted {
  std::string operator()(std::string_view text) const;
};
inline constexpr Quoted quoted;

bool is_valid_utf8(std::string_view text);

// Returns `text` with everything that a terminal could interpret as a command escaped: control characters
// except line ends and tabs, marks that change the writing direction, bytes that are not UTF-8. Valid JSON
// stays valid and keeps its meaning.
std::string printable(std::string_view text);
bool is_printable(std::string_view text);  // nothing to escape, and no line end or tab

// Returns the text, or its quoted form when it is not plain: control characters never reach a terminal.
inline std::string shown(const std::string& text) {
  return is_printable(text) ? text : quoted(text);
}

// Returns ASCII letters in lower case, every other byte as it is.
std::string lowercase(std::string text);

// Returns whether the text consists of digits alone.
bool is_number(std::string_view text);

// Splits at every `at`, keeping empty pieces; the pieces point into `text`.
std::vector<std::string_view> split(std::string_view text, char at);

// Returns the candidate with the fewest edits from `name`, when few enough to be a likely typo; else empty.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace vitrail
