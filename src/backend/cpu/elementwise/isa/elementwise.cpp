// Elementwise functions and their gradients: activations, additions, scaling, dropout.
#include "backend/cpu/isa/kernels.h"
#include "backend/cpu/isa/math_grad.h"
#include "backend/cpu/isa/rows.h"

namespace vitrail::cpu::VT_ISA {
namespace {

typedef uint64_t LongVec __attribute__((vector_size(kLanes * 4)));  // half as many lanes
typedef int64_t SignedLongVec __attribute__((vector_size(kLanes * 4)));
typedef int32_t HalfIntVec __attribute__((vector_size(kLanes * 2)));

// A mask with all bits set in the lanes whose elements index, index + 1, ... dropout keeps, by counter_hash
// of base/rng.h.
inline IntVec kept(uint64_t stream, uint64_t index, uint64_t threshold) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  HalfIntVec half[2];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    LongVec z;
    for (int i = 0; i < kLanes / 2; ++i) z[i] = static_cast<uint64_t>(h * kLanes / 2 + i + 1) * kStep;
    z = z + (stream + index * kStep);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    const auto bits = reinterpret_cast<SignedLongVec>((z ^ (z >> 31)) >> 11);  // 53: the sign is free
    half[h] = __builtin_convertvector(bits >= static_cast<int64_t>(threshold), HalfIntVec);
  }
  IntVec result;
  __builtin_memcpy(&result, half, sizeof half);
  return result;
}

}  // namespace

void activate(Activation act, const float* x, int64_t count, float* y) {
  with_activation(act, [&]<Activation kAct>() {
    map_row(x, count, y, [](Vec v, int64_t, int64_t) { return apply<kAct>(v); });
  });
}

void add(const float* a, const float* b, int64_t count, float* y) {
  map_row(a, count, y, [&](Vec v, int64_t i, int64_t n) { return v + load_up_to(b + i, n); });
}

void add_row(const float* x, const float* row, int64_t rows, int64_t width, float* y) {
  for (int64_t r = 0; r < rows; ++r) add(x + r * width, row, width, y + r * width);
}

void scale_row(const float* x, const float* row, int64_t rows, int64_t width, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    map_row(x + r * width, width, y + r * width,
            [&](Vec v, int64_t i, int64_t n) { return v * load_up_to(row + i, n); });
  }
}

void multiply(const float* x, float factor, int64_t count, float* y) {
  map_row(x, count, y, [f = set1(factor)](Vec v, int64_t, int64_t) { return v * f; });
}

void drop_elements(const DropElements& a) {
  const Vec scale = set1(a.scale);
  map_row(a.x, a.count, a.y, [&](Vec v, int64_t i, int64_t) {
    return kept(a.stream, a.index + static_cast<uint64_t>(i), a.threshold) ? v * scale : Vec{};
  });
}

void activate_grad(Activation act, const float* x, const float* dy, int64_t count, float* dx) {
  with_activation(act, [&]<Activation kAct>() {
    map_row(x, count, dx,
            [&](Vec v, int64_t i, int64_t n) { return load_up_to(dy + i, n) * slope<kAct>(v); });
  });
}

void tanh_grad(const float* y, const float* dy, int64_t count, float* dx) {
  map_row(y, count, dx,
          [&](Vec v, int64_t i, int64_t n) { return load_up_to(dy + i, n) * (set1(1.0f) - v * v); });
}

constinit const ElementwiseTable kElementwise = {.activate = activate,
                                                 .add_row = add_row,
                                                 .scale_row = scale_row,
                                                 .multiply = multiply,
                                                 .drop_elements = drop_elements,
                                                 .activate_grad = activate_grad,
#define VT_FILL_MAP(op, function) .function = (function),
                                                 VT_MAPS(VT_FILL_MAP)};

}  // namespace vitrail::cpu::VT_ISA
