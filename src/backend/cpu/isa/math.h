// exp and the two GELUs on vectors, with their errors (measured over every kind of argument by
// tests/backend/cpu_rows_test.cpp). Knows no memory and no loops.
#pragma once

#include "backend/cpu/isa/table.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {

template <int N>
inline Vec polynomial(Vec x, const float (&coefficients)[N]) {
  Vec sum = set1(coefficients[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) sum = fmadd(sum, x, set1(coefficients[i]));
  return sum;
}

// exp(x) within 2 ulp for -87 <= x <= 88; smaller arguments give exp(-87) = 1.6e-38, larger ones exp(88). NaN
// stays NaN.
inline Vec exp(Vec x) {
  x = min(set1(88.0f), max(set1(-87.0f), x));
  // Adding 1.5 * 2^23 rounds to an integer, left in the low bits of the sum.
  const Vec magic = set1(12582912.0f);
  const Vec shifted = fmadd(x, set1(1.44269504f), magic);
  const Vec n = shifted - magic;
  Vec r = fmadd(n, set1(-0.693359375f), x);  // the high part of ln 2 has few bits: n times it is exact
  r = fmadd(n, set1(2.12194440e-4f), r);
  constexpr float kTaylor[] = {1.0f,          1.0f,           0.499999935f,  0.166665207f,
                               0.0416683876f, 0.00836871178f, 0.00138146087f};
  const Vec p = polynomial(r, kTaylor);
  return p * reinterpret_cast<Vec>((reinterpret_cast<BitVec>(shifted) << 23) + 0x3f800000u);
}

// 2^y within 2 ulp for y <= 127; arguments below -126 give 2^-126. NaN stays NaN.
inline Vec exp2(Vec y) {
  y = max(set1(-126.0f), y);
  const Vec magic = set1(12582912.0f), shifted = y + magic;  // as in exp
  constexpr float kMinimax[] = {1.0f,          0.693147004f,   0.240222424f,
                                0.0555073358f, 0.00967151299f, 0.00132647273f};
  const Vec p = polynomial(y - (shifted - magic), kMinimax);
  return reinterpret_cast<Vec>(reinterpret_cast<BitVec>(p) + (reinterpret_cast<BitVec>(shifted) << 23));
}

// erfc(t / sqrt 2) / 2 for 0 <= t <= 8 as the eighth power of a polynomial, fitted so that t times it has an
// even absolute error: 1.8e-9 max(1, t) before rounding. The eighth root is smooth, and three squarings cost
// less than an exponential.
inline Vec half_erfc(Vec t) {
  constexpr float kEighthRoot[] = {0.917004049f,     -0.0914579108f,  -0.0319260173f,
                                   -0.000676004507f, 0.00150864944f,  3.17244667e-05f,
                                   -5.93891018e-05f, 7.32622129e-06f, -2.84934401e-07f};
  Vec power = polynomial(t, kEighthRoot);
  power = power * power;
  power = power * power;
  return power * power;
}

// 0.5 x (1 + erf(x / sqrt 2)) within 2e-7 max(1, |x|), as max(x, 0) - |x| half_erfc(|x|).
inline Vec gelu_erf(Vec x) {
  const Vec t = min(set1(8.0f), abs(x));  // beyond, the product is below 1e-11
  return fmadd(-t, half_erfc(t), max(Vec{}, x));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) within 2e-7 max(1, |x|): x times a logistic function.
inline Vec gelu_tanh(Vec x) {
  const Vec cubic = fmadd(x * x, set1(0.044715f), set1(1.0f)) * x;
  return x / (set1(1.0f) + exp2(min(set1(126.0f), cubic * -2.30220819f)));
}

template <Activation kAct>
inline Vec apply(Vec x) {
  if constexpr (kAct == Activation::kGeluErf) return gelu_erf(x);
  if constexpr (kAct == Activation::kGeluTanh) return gelu_tanh(x);
  return x;
}

// Calls body with the activation as a compile-time constant.
template <typename Body>
inline void with_activation(Activation act, const Body& body) {
  switch (act) {
    case Activation::kGeluErf:
      return body.template operator()<Activation::kGeluErf>();
    case Activation::kGeluTanh:
      return body.template operator()<Activation::kGeluTanh>();
    case Activation::kNone:
      return body.template operator()<Activation::kNone>();
  }
}

}  // namespace vitrail::cpu::VT_ISA
