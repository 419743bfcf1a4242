// Reading little-endian binary fields from a block of bytes, with every step checked. Knows no format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace vitrail {

static_assert(std::endian::native == std::endian::little, "weight files are read in place as little-endian");

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A position in a block of bytes that can only move forward and never past the end.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(uint64_t count) {
    VT_REQUIRE(count <= remaining(), ErrorKind::kData, "cut short: %llu bytes wanted at byte %zu, %zu left",
               static_cast<unsigned long long>(count), position_, remaining());
    const auto piece = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return piece;
  }
  std::string_view take_text(uint64_t count) { return as_text(take(count)); }

  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

// The other direction: fields appended to a string.
template <typename T>
void append_le(std::string& target, T value) {
  target.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace vitrail
