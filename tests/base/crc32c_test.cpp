#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"

namespace vitrail {
namespace {

struct Known {
  std::string text;
  uint32_t crc;
};

// RFC 3720, B.4, and the usual check string.
std::vector<Known> known_answers() {
  std::string up, down;
  for (int i = 0; i < 32; ++i) {
    up += static_cast<char>(i);
    down += static_cast<char>(31 - i);
  }
  return {{"", 0},
          {"123456789", 0xE3069283},
          {std::string(32, '\0'), 0x8A9136AA},
          {std::string(32, '\xFF'), 0x62A8AB43},
          {up, 0x46DD794E},
          {down, 0x113FDB5C}};
}

std::string random_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(counter_hash(7, i));
  return text;
}

TEST(Crc32c, KnownAnswersByBothWays) {
  for (const Known& known : known_answers()) {
    EXPECT_EQ(crc32c(as_byte_span(known.text)), known.crc);
    EXPECT_EQ(crc32c_by_table(as_byte_span(known.text)), known.crc);
  }
}

TEST(Crc32c, ContinuesAtEveryCutAndAlignment) {
  const std::string text = random_text(67);
  for (size_t start = 0; start < 9; ++start) {
    const std::string_view whole = std::string_view(text).substr(start);
    const uint32_t expected = crc32c_by_table(as_byte_span(whole));
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      const auto a = as_byte_span(whole.substr(0, cut)), b = as_byte_span(whole.substr(cut));
      EXPECT_EQ(crc32c(b, crc32c(a)), expected) << start << " " << cut;
      EXPECT_EQ(crc32c_by_table(b, crc32c_by_table(a)), expected) << start << " " << cut;
    }
  }
}

TEST(Crc32c, EveryFlippedBitChangesIt) {
  std::string text = random_text(40);
  const uint32_t before = crc32c(as_byte_span(text));
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ flip);
    EXPECT_NE(crc32c(as_byte_span(text)), before) << "bit " << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ flip);
  }
}

}  // namespace
}  // namespace vitrail
