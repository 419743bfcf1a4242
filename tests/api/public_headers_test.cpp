// The public headers by themselves: they stand alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "base/file.h"
#include "source_root.h"

namespace vitrail {
namespace {

const std::string kHeaders = VT_SOURCE_DIR "/include/vitrail/";

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
