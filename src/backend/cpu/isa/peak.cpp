#include "backend/cpu/isa/peak.h"

#include "backend/cpu/isa/vec.h"

namespace vitrail::VT_ISA {

float fma_burst(int64_t rounds) {
  Vec sums[kPeakChains];
  for (int i = 0; i < kPeakChains; ++i) sums[i] = set1(static_cast<float>(i));
  const Vec factor = set1(0.999f), term = set1(0.001f);
  for (int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kPeakChains; ++i) sums[i] = fmadd(sums[i], factor, term);
  float total = 0;
  for (int i = 0; i < kPeakChains; ++i) total += sum_lanes(sums[i]);
  return total;
}

}  // namespace vitrail::VT_ISA
