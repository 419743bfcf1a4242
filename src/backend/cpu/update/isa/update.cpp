// Optimizer updates, one pass over the elements of a parameter. Means move by rate * (new - old), and weights
// by a difference that is subtracted: a factor such as 0.9999 would lose its last digits in f32.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/vec.h"

namespace vitrail::cpu::VT_ISA {
namespace {

typedef float HalfVec __attribute__((vector_size(kLanes * 2)));
typedef double DoubleVec __attribute__((vector_size(kLanes * 4)));  // half as many lanes

// Sums of squares, in double.
struct Squares {
  DoubleVec low = {}, high = {};

  void add(Vec v) {
    HalfVec half[2];
    __builtin_memcpy(half, &v, sizeof v);
    const DoubleVec a = __builtin_convertvector(half[0], DoubleVec),
                    b = __builtin_convertvector(half[1], DoubleVec);
    low += a * a;
    high += b * b;
  }
  double total() const {
    const DoubleVec all = low + high;
    double sum = 0;
    for (int i = 0; i < kLanes / 2; ++i) sum += all[i];
    return sum;
  }
};

// Calls body(first, lanes) for whole vectors and for a last partial one.
template <typename Body>
inline void each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, int64_t{kLanes});
  if (i < count) body(i, count - i);
}

inline Vec towards(Vec mean, Vec value, float rate) {
  return fmadd(value - mean, set1(rate), mean);
}

// Reads the gradient of elements [i, i + n) and zeroes its sum.
inline Vec take_gradient(const UpdateElements& a, Vec w, int64_t i, int64_t n) {
  const Vec g = load_up_to(a.sum + i, n) * a.factor;
  store_up_to(a.sum + i, Vec{}, n);
  return fmadd(w, set1(a.coupled), g);
}

inline void move(const UpdateElements& a, Vec w, Vec direction, int64_t i, int64_t n) {
  store_up_to(a.w + i, w - fmadd(direction, set1(a.lr), w * a.shrink), n);
}

// direction_of gives the direction of moments m and v; renew_moments first computes and stores those of
// elements [i, i + n).
inline Vec direction_of(const MomentElements& o, Vec m, Vec v) {
  return m * o.correction / fmadd(sqrt(v), set1(o.root), set1(o.eps));
}
inline Vec renew_moments(const MomentElements& o, Vec g, int64_t i, int64_t n) {
  const Vec m = towards(load_up_to(o.m + i, n), g, o.m_rate),
            v = towards(load_up_to(o.v + i, n), g * g, o.v_rate);
  store_up_to(o.m + i, m, n);
  store_up_to(o.v + i, v, n);
  return direction_of(o, m, v);
}

}  // namespace

double square_sum(const float* x, int64_t count) {
  Squares squares;
  each_vector(count, [&](int64_t i, int64_t n) { squares.add(load_up_to(x + i, n)); });
  return squares.total();
}

void sgd_update(const UpdateElements& a, float* m, float momentum, bool nesterov) {
  each_vector(a.count, [&](int64_t i, int64_t n) {
    const Vec w = load_up_to(a.w + i, n), g = take_gradient(a, w, i, n);
    Vec direction = g;
    if (m) {
      const Vec mean = fmadd(load_up_to(m + i, n), set1(momentum), g);
      store_up_to(m + i, mean, n);
      direction = nesterov ? fmadd(mean, set1(momentum), g) : mean;
    }
    move(a, w, direction, i, n);
  });
}

void adam_update(const UpdateElements& a, const MomentElements& moments) {
  each_vector(a.count, [&](int64_t i, int64_t n) {
    const Vec w = load_up_to(a.w + i, n);
    move(a, w, renew_moments(moments, take_gradient(a, w, i, n), i, n), i, n);
  });
}

void lion_update(const UpdateElements& a, float* m, float mix_rate, float m_rate) {
  each_vector(a.count, [&](int64_t i, int64_t n) {
    const Vec w = load_up_to(a.w + i, n), g = take_gradient(a, w, i, n), old = load_up_to(m + i, n);
    const Vec mix = towards(old, g, mix_rate), zero{};
    const Vec sign = mix > zero ? set1(1.0f) : (mix < zero ? set1(-1.0f) : zero);
    store_up_to(m + i, towards(old, g, m_rate), n);
    move(a, w, sign, i, n);
  });
}

SquareSums lamb_moments(const UpdateElements& a, const MomentElements& moments) {
  Squares params, updates;
  each_vector(a.count, [&](int64_t i, int64_t n) {
    const Vec w = load_up_to(a.w + i, n), g = load_up_to(a.sum + i, n) * a.factor;
    store_up_to(a.sum + i, Vec{}, n);
    params.add(w);
    const Vec u = fmadd(w, set1(a.coupled), renew_moments(moments, g, i, n));
    updates.add(keep_first(u, n, 0.0f));
  });
  return {params.total(), updates.total()};
}

void lamb_update(const UpdateElements& a, const MomentElements& moments) {
  each_vector(a.count, [&](int64_t i, int64_t n) {
    const Vec w = load_up_to(a.w + i, n);
    const Vec u = direction_of(moments, load_up_to(moments.m + i, n), load_up_to(moments.v + i, n));
    store_up_to(a.w + i, w - fmadd(w, set1(a.coupled), u) * a.lr, n);
  });
}

void move_towards(const float* x, float rate, int64_t count, float* mean) {
  each_vector(count, [&](int64_t i, int64_t n) {
    store_up_to(mean + i, towards(load_up_to(mean + i, n), load_up_to(x + i, n), rate), n);
  });
}

constinit const UpdateTable kUpdate = {
    .square_sum = square_sum,
    .sgd_update = sgd_update,
    .adam_update = adam_update,
    .lion_update = lion_update,
    .lamb_moments = lamb_moments,
    .lamb_update = lamb_update,
    .move_towards = move_towards,
};

}  // namespace vitrail::cpu::VT_ISA
