// The public headers by themselves: they stand alone, and what they share with the inside is the same text.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "base/file.h"

namespace vitrail {
namespace {

const std::string kHeaders = VT_SOURCE_DIR "/include/vitrail/";

// From `start` to the next "};", without comments and with single blanks.
std::string definition(const std::string& path, const std::string& start) {
  std::string text = read_file(path, 1 << 20);
  const size_t begin = text.find(start);
  if (begin == std::string::npos) return "";
  text = text.substr(begin, text.find("\n};", begin) - begin);
  text = std::regex_replace(text, std::regex("//[^\n]*"), " ");
  text = std::regex_replace(text, std::regex("\\s+"), " ");
  return text.substr(0, text.find_last_not_of(" ") + 1);
}

// One class under one name: a program that catches it must see the very object that is thrown.
TEST(PublicHeaders, TheErrorIsTheOneThatIsThrown) {
  for (const char* start : {"enum class ErrorKind", "class Error "}) {
    const std::string inside = definition(VT_SOURCE_DIR "/src/base/error.h", start);
    std::string shown = definition(kHeaders + "error.h", start);
    EXPECT_GT(inside.size(), 100u) << start;
    EXPECT_EQ(shown, inside);
  }
}

TEST(PublicHeaders, IncludeNothingOfTheInside) {
  size_t headers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kHeaders)) {
    const std::string text = read_file(entry.path().string(), 1 << 20);
    const std::regex include("#include ([<\"])([^>\"]+)");
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it)
      EXPECT_TRUE((*it)[1] == "<" || (*it)[2].str().starts_with("vitrail/")) << (*it)[0];
    ++headers;
  }
  EXPECT_GE(headers, 6u);
}

}  // namespace
}  // namespace vitrail
