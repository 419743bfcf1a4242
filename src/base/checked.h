// Arithmetic on sizes. Where they come from untrusted files, an overflow returns nothing instead of a wrapped
// number.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace vitrail {

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Returns the product of non-negative extents times `unit`, below 2^63; nothing on a negative extent or
// overflow.
inline std::optional<uint64_t> checked_bytes(std::span<const int64_t> extents, uint64_t unit) {
  uint64_t total = unit;
  for (int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    const auto next = checked_mul(total, static_cast<uint64_t>(extent));
    if (!next || *next > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    total = *next;
  }
  return total;
}

// Both are for sizes that are known to be small: value + divisor must not overflow.
template <std::integral T>
constexpr T ceil_div(T value, std::type_identity_t<T> divisor) {
  return (value + divisor - 1) / divisor;
}
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return ceil_div(value, multiple) * multiple;
}

}  // namespace vitrail
