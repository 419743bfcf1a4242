// A 64-bit hash of many bytes, for comparing memory that should be the same: a change within one 8-byte word,
// so every flipped bit, changes it for certain, and what else goes wrong by chance does as good as always. No
// protection against people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrail {

uint64_t bulk_hash(std::span<const std::byte> bytes);

}  // namespace vitrail
