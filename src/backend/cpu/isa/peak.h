// Nothing but multiply-adds in registers, per instruction set: what backend/cpu/peak.cpp times to learn how
// fast this processor can compute at all.
#pragma once

#include <cstdint>

namespace vitrail {

inline constexpr int kPeakChains = 12;  // independent sums, enough to hide the latency of one

// `rounds` multiply-adds on each chain, over whole vectors; the result only keeps the compiler honest.
namespace baseline {
float fma_burst(int64_t rounds);
}
namespace avx2 {
float fma_burst(int64_t rounds);
}
namespace avx512 {
float fma_burst(int64_t rounds);
}

}  // namespace vitrail
