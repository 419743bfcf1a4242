#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace vitrail {
namespace {

TEST(Text, QuotedShowsWhatATerminalCanTake) {
  EXPECT_EQ(quoted("plain é"), "\"plain é\"");
  EXPECT_EQ(quoted(std::string("a\x1b[2J\n\xff\0", 8)), "\"a\\x1b[2J\\x0a\\xff\\x00\"");
  EXPECT_LT(quoted(std::string(1000000, 'x')).size(), 100u);
  EXPECT_TRUE(is_valid_utf8(quoted(std::string(79, 'x') + "é")));
}

TEST(Text, NothingPrintableCommandsATerminal) {
  EXPECT_EQ(printable("plain é 😀\n\tline two"), "plain é 😀\n\tline two");
  EXPECT_EQ(printable("\x1b[2J\a\b\r\x7f"), "\\x1b[2J\\x07\\x08\\x0d\\u007f");
  EXPECT_EQ(printable("\xff\xc2"), "\\xff\\xc2") << "bytes that are not UTF-8";
  EXPECT_EQ(printable("\u009b2J \u0085"), "\\u009b2J \\u0085") << "control characters of two bytes";
  const std::vector<std::string> bidi = {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b",
                                         "\u202c", "\u202d", "\u202e", "\u2066", "\u2067",
                                         "\u2068", "\u2069", "\u2028", "\u2029"};
  for (const std::string& mark : bidi) {
    EXPECT_TRUE(printable(mark).starts_with("\\u")) << mark;
    EXPECT_FALSE(is_printable("a" + mark));
  }
  EXPECT_TRUE(is_printable("שלום 你好 👩‍🚀")) << "text of any direction, joined characters";
  EXPECT_FALSE(is_printable("two\nlines"));
}

TEST(Text, Utf8Rules) {
  for (const char* good : {"", "a", "é", "€", "😀", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "a\xff"})
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
}

TEST(Text, NearestNameFindsTyposOnly) {
  const std::vector<std::string> names = {"batch_size", "learning_rate", "epochs", "lr"};
  EXPECT_EQ(nearest_name("batchsize", names), "batch_size");
  EXPECT_EQ(nearest_name("leaning_rate", names), "learning_rate");
  EXPECT_EQ(nearest_name("epcohs", names), "epochs");
  EXPECT_EQ(nearest_name("completely_different", names), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(Text, NearestNameCountsASwapOnceAndPrefersTheFirst) {
  EXPECT_EQ(nearest_name("abdc", std::vector<std::string>{"abxx", "abcd"}), "abcd");
  EXPECT_EQ(nearest_name("cat", std::vector<std::string>{"bat", "rat"}), "bat");
}

TEST(Text, LowercaseChangesAsciiLettersOnly) {
  EXPECT_EQ(lowercase("AZaz 09[@`{"), "azaz 09[@`{");
  EXPECT_EQ(lowercase("\xc3\x89T\xc3\x89"), "\xc3\x89t\xc3\x89");
  EXPECT_EQ(lowercase(""), "");
}

TEST(Text, SplitKeepsEmptyPieces) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(split("rand-m9-n2", '-'), (Pieces{"rand", "m9", "n2"}));
  EXPECT_EQ(split("-a--", '-'), (Pieces{"", "a", "", ""}));
  EXPECT_EQ(split("", '-'), Pieces{""});
}

TEST(Text, NumbersAreDigitsAlone) {
  EXPECT_TRUE(is_number("0123"));
  EXPECT_FALSE(is_number(""));
  EXPECT_FALSE(is_number("-1"));
}

TEST(Shown, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(shown("été blocks.0"), "été blocks.0");
  EXPECT_EQ(shown("a\033[2J").find('\033'), std::string::npos);
  EXPECT_EQ(shown("\xff").find('\xff'), std::string::npos);
}

}  // namespace
}  // namespace vitrail
