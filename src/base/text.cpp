#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"

namespace vitrail {

namespace {

// Returns the length of the valid UTF-8 sequence that starts `text`, 0 when there is none.
size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_large = first == 0xF4 && byte(1) > 0x8F;
    return tail(1) && tail(2) && tail(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

// Decodes the valid UTF-8 sequence `bytes`.
uint32_t code_point(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  uint32_t code = bytes.size() == 1 ? first : first & (0xFFu >> (bytes.size() + 1));
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

// Returns whether a character is a control character, or changes direction or lines of the text around it.
bool commands_terminal(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                                                       {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069},
                                                       {0xFFF9, 0xFFFB}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

// Removes the first character of `text` and returns it: as it is when it is harmless or one of `kept`, else
// escaped.
std::string take_visible(std::string_view& text, std::string_view kept) {
  const size_t length = utf8_sequence(text);
  const std::string_view sequence = text.substr(0, std::max<size_t>(length, 1));
  text.remove_prefix(sequence.size());
  const auto byte = static_cast<unsigned char>(sequence[0]);
  if (length == 0 || (byte < 0x20 && kept.find(sequence[0]) == kept.npos)) return strf("\\x%02x", byte);
  const uint32_t code = code_point(sequence);
  return code >= 0x20 && commands_terminal(code) ? strf("\\u%04x", code) : std::string(sequence);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) shown += take_visible(text, "\n\t");
  return shown;
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    if (length == 0 || commands_terminal(code_point(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Quoted::operator()(std::string_view text) const {
  constexpr size_t kShown = 80;
  std::string shown = "\"";
  while (!text.empty() && shown.size() < kShown) shown += take_visible(text, "");
  return shown + (text.empty() ? "\"" : "...\"");
}

namespace {
// Counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}
}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > 256) return {};
  std::string nearest;
  size_t fewest = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 256) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance >= fewest) continue;
    fewest = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string lowercase(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(at)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

}  // namespace vitrail
