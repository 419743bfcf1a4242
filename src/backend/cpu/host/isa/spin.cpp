// The yardstick of peak FLOP/s, compiled for each instruction set like the kernels that it judges.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {
namespace {

constexpr int kSpinChains = 12;  // more than latency times units

float spin(int64_t rounds) {
  Vec chain[kSpinChains];
  for (int i = 0; i < kSpinChains; ++i) chain[i] = set1(static_cast<float>(i));
  const Vec factor = set1(0.5f), term = set1(1.0f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kSpinChains; ++i) chain[i] = fmadd(chain[i], factor, term);
  }
  Vec sum{};
  for (int i = 0; i < kSpinChains; ++i) sum = sum + chain[i];
  return sum_lanes(sum);
}

}  // namespace

constinit const SpinTable kSpin = {.spin_flops = 2 * kSpinChains * kLanes, .spin = spin};

}  // namespace vitrail::cpu::VT_ISA
