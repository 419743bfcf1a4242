// A 64-bit hash of many bytes, for comparing memory that should be the same: a change within one 8-byte word,
// so every flipped bit, changes it for certain, and what else goes wrong by chance does as good as always. No
// protection against people.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/rng.h"

namespace vitrail {

namespace bulk_hash_detail {

inline constexpr size_t kLanes = 8;  // as many multiplications as are on their way at once
inline constexpr uint64_t kFactor = 0x9FB21C651E98DF25u;

inline uint64_t word_at(const std::byte* at, size_t bytes = sizeof(uint64_t)) {
  uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

// Mixing is one to one in either argument while the other stays: a word that differs is never lost.
inline uint64_t mixed(uint64_t state, uint64_t word) {
  state ^= word;
  state = (state ^ (state >> 32)) * kFactor;
  return state ^ (state >> 29);
}

}  // namespace bulk_hash_detail

inline uint64_t bulk_hash(std::span<const std::byte> bytes) {
  using namespace bulk_hash_detail;
  constexpr size_t kStride = kLanes * sizeof(uint64_t);
  std::array<uint64_t, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = counter_hash(kFactor, i);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kStride; left -= kStride, at += kStride)
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = mixed(lanes[i], word_at(at + i * sizeof(uint64_t)));
  uint64_t hash = counter_hash(kFactor, bytes.size());
  for (const uint64_t lane : lanes) hash = mixed(hash, lane);
  for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), at += sizeof(uint64_t))
    hash = mixed(hash, word_at(at));
  if (left > 0) hash = mixed(hash, word_at(at, left));
  return counter_hash(hash, 0);
}

}  // namespace vitrail
