#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace vitrail {

namespace {

static_assert(std::endian::native == std::endian::little, "words are taken from memory as they lie");

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, lowest bit first

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][v]: the remainder of byte v followed by k zero bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t value = 0; value < 256; ++value) {
    uint32_t crc = value;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    tables[0][value] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t value = 0; value < 256; ++value) {
      const uint32_t before = tables[k - 1][value];
      tables[k][value] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}
constexpr Tables kTables = make_tables();

uint64_t take_word(std::span<const std::byte>& bytes) {
  uint64_t word;
  std::memcpy(&word, bytes.data(), sizeof word);
  bytes = bytes.subspan(sizeof word);
  return word;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, uint32_t seed) {
  uint64_t crc = ~seed;
  while (bytes.size() >= 8) crc = _mm_crc32_u64(crc, take_word(bytes));
  auto narrow = static_cast<uint32_t>(crc);
  for (std::byte b : bytes) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(b));
  return ~narrow;
}
#endif

}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t seed) {
  uint32_t crc = ~seed;
  while (bytes.size() >= 8) {
    const uint64_t word = take_word(bytes) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 255];
  }
  for (std::byte b : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(b)) & 255];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(bytes, seed);
#endif
  return crc32c_by_table(bytes, seed);
}

}  // namespace vitrail
