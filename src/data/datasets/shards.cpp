// Finds the files that a pattern of shards stands for: braces, ranges of numbers and wildcards.
#include "data/datasets/find_files.h"

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/error.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr size_t kMostShards = 1'000'000;

// Returns "000..146" as its numbers with leading zeros kept; nothing when it is no range.
std::vector<std::string> range_of(const std::string& text) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return {};
  const std::string from = text.substr(0, dots), to = text.substr(dots + 2);
  uint64_t first = 0, last = 0;
  const auto number = [](const std::string& digits, uint64_t& value) {
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc() && end == digits.data() + digits.size() && digits.size() < 10;
  };
  VT_REQUIRE(number(from, first) && number(to, last) && first <= last && last - first < kMostShards,
             ErrorKind::kConfig, "{%s}: expected a range of rising numbers, as {000..146}", text.c_str());
  std::vector<std::string> words;
  for (uint64_t i = first; i <= last; ++i)
    words.push_back(strf("%0*llu", static_cast<int>(from.size()), static_cast<unsigned long long>(i)));
  return words;
}

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> words = range_of(text);
  if (!words.empty()) return words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& pattern) {
  std::vector<std::string> done = {""};
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = std::min(pattern.find('{', at), pattern.size());
    for (std::string& word : done) word += pattern.substr(at, open - at);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    VT_REQUIRE(close != std::string::npos, ErrorKind::kConfig, "%s: { without }", quoted(pattern).c_str());
    const std::vector<std::string> choices = alternatives(pattern.substr(open + 1, close - open - 1));
    VT_REQUIRE(done.size() * choices.size() <= kMostShards, ErrorKind::kConfig,
               "%s stands for more than %zu files", quoted(pattern).c_str(), kMostShards);
    std::vector<std::string> longer;
    for (const std::string& word : done)
      for (const std::string& choice : choices) longer.push_back(word + choice);
    done = std::move(longer);
    at = close + 1;
  }
  return done;
}

std::vector<std::string> find_shards(const std::string& pattern) {
  std::vector<std::string> shards;
  for (const std::string& word : expand_braces(pattern)) {
    if (word.find_first_of("*?[") == std::string::npos) {
      shards.push_back(word);
      continue;
    }
    glob_t found{};
    const int code = ::glob(word.c_str(), 0, nullptr, &found);
    for (size_t i = 0; code == 0 && i < found.gl_pathc; ++i) shards.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (code != 0)
      throw Error(ErrorKind::kData, strf("no file matches %s", quoted(word).c_str()),
                  "in a shell, quote the pattern");
  }
  return shards;
}

}  // namespace vitrail
