// CRC-32C (Castagnoli), the checksum of checkpoints, packed data and event files. Uses the processor's own
// instruction where there is one. Knows no format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrail {

// `seed` is the checksum of what came before: crc32c(b, crc32c(a)) is that of a and b together.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t seed = 0);

// Computes the same checksum by tables alone, for processors without the instruction.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t seed = 0);

}  // namespace vitrail
