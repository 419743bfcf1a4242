// Derivatives of the two GELUs on vectors, with their errors (measured by tests/backend/cpu_grads_test.cpp).
#pragma once

#include "backend/cpu/isa/math.h"

namespace vitrail::cpu::VT_ISA {

// Beyond +-9 both derivatives are 0 or 1 to less than 1e-13; the bound also keeps infinities out of products.
inline Vec bounded(Vec x) {
  return min(set1(9.0f), max(set1(-9.0f), x));
}

// Phi(x) + x phi(x), the derivative of 0.5 x (1 + erf(x / sqrt 2)), within 3e-7. With t = |x| it is exp(-t^2
// / 2) times a polynomial, fitted so that the product of the two has an even absolute error, or 1 minus that:
// one power of two serves both of its terms.
inline Vec gelu_erf_slope(Vec x) {
  constexpr float kTail[] = {0.49999994f,     -0.797878802f,    0.249916792f,   -0.132513806f,
                             0.0611548945f,   -0.0243139379f,   0.00793939643f, -0.0019746297f,
                             0.000339739054f, -3.52078678e-05f, 1.63169466e-06f};
  const Vec t = bounded(x), tail = exp2(t * t * -0.721347520f) * polynomial(abs(t), kTail);
  return t > Vec{} ? set1(1.0f) - tail : tail;
}

// The derivative of x s(u), with s the logistic function and u = 2 sqrt(2 / pi) (x + 0.044715 x^3), within
// 6e-7.
inline Vec gelu_tanh_slope(Vec x) {
  const Vec t = bounded(x), square = t * t;
  const Vec u = fmadd(square, set1(0.044715f), set1(1.0f)) * t * 1.59576912f;
  const Vec du = fmadd(square, set1(0.134145f), set1(1.0f)) * 1.59576912f;
  const Vec e = exp2(u * -1.44269504f), s = set1(1.0f) / (set1(1.0f) + e);
  return fmadd(t * s * (e * s), du, s);  // 1 - s = e s, without the cancellation
}

template <Activation kAct>
inline Vec slope(Vec x) {
  if constexpr (kAct == Activation::kGeluErf) return gelu_erf_slope(x);
  if constexpr (kAct == Activation::kGeluTanh) return gelu_tanh_slope(x);
  return set1(1.0f);
}

}  // namespace vitrail::cpu::VT_ISA
