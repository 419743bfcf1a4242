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

// `text` with everything that a terminal could take for an order made visible: control characters but for
// line ends and tabs, marks that turn the direction of writing, bytes that are not UTF-8. Valid JSON stays
// so, and means the same.
std::string printable(std::string_view text);
bool is_printable(std::string_view text);  // nothing to make visible, and no line end or tab

// The text itself, or its quoted form when it is not plain: control characters never reach a terminal.
inline std::string shown(const std::string& text) {
  return is_printable(text) ? text : quoted(text);
}

// The pieces between `at`, the empty ones too; they look into `text`.
std::vector<std::string_view> split(std::string_view text, char at);

// The candidate with the fewest edits from `name`, when few enough to be a likely typo; else empty.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace vitrail
