// Conversion between f32 and the 16-bit floats.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {
namespace {

typedef uint32_t BitsVec __attribute__((vector_size(kLanes * 4)));
typedef uint16_t HalfVec __attribute__((vector_size(kLanes * 2)));
typedef uint16_t UnalignedHalfVec __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

inline BitsVec bits_of(Vec v) {
  return reinterpret_cast<BitsVec>(v);
}

inline Vec floats_of(BitsVec v) {
  return reinterpret_cast<Vec>(v);
}

// The multiplication also makes subnormals right; Inf and NaN get the exponent that it cannot give them.
inline Vec from_f16(BitsVec h) {
  const BitsVec sign = (h & 0x8000u) << 16, magnitude = (h & 0x7fffu) << 13;
  const BitsVec scaled = bits_of(floats_of(magnitude) * 0x1p112f);
  return floats_of((magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : scaled) | sign);
}

inline BitsVec to_f16(Vec v) {
  const BitsVec bits = bits_of(v), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const BitsVec small = bits_of(floats_of(magnitude) + set1(0.5f)) - 0x3f000000u;  // rounds at 2^-24
  const BitsVec normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  BitsVec half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477ff000u ? BitsVec{} + 0x7c00u : half;  // rounds past 65504
  half = magnitude > 0x7f800000u ? BitsVec{} + 0x7e00u : half;   // NaN
  return half | sign;
}

inline BitsVec to_bf16(Vec v) {
  const BitsVec bits = bits_of(v), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}

template <typename F>
inline void widen_with(const uint16_t* x, int64_t count, float* y, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const HalfVec h = *reinterpret_cast<const UnalignedHalfVec*>(x + i);
    store(y + i, f(__builtin_convertvector(h, BitsVec)));
  }
  if (i == count) return;
  BitsVec h{};
  for (int64_t j = i; j < count; ++j) h[j - i] = x[j];
  store_some(y + i, f(h), count - i);
}

template <typename F>
inline void narrow_with(const float* x, int64_t count, uint16_t* y, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    *reinterpret_cast<UnalignedHalfVec*>(y + i) = __builtin_convertvector(f(load(x + i)), HalfVec);
  if (i == count) return;
  const BitsVec h = f(load_some(x + i, count - i));
  for (int64_t j = i; j < count; ++j) y[j] = static_cast<uint16_t>(h[j - i]);
}

}  // namespace

void widen(Float16 from, const uint16_t* x, int64_t count, float* y) {
  if (from == Float16::kF16) return widen_with(x, count, y, from_f16);
  widen_with(x, count, y, [](BitsVec h) { return floats_of(h << 16); });
}

void narrow(Float16 to, const float* x, int64_t count, uint16_t* y) {
  if (to == Float16::kF16) return narrow_with(x, count, y, to_f16);
  narrow_with(x, count, y, to_bf16);
}

constinit const ConvertTable kConvert = {
    .widen = widen,
    .narrow = narrow,
};

}  // namespace vitrail::cpu::VT_ISA
