// A GEMM by dot-product instructions as tests make it: repeatable values, computed by one level's functions
// between guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/lowp/lowp_gemm.h"
#include "backend/cpu_test_util.h"

namespace vitrail::testing {

// Bytes between guards, at an address that is a multiple of 64.
class Guarded {
 public:
  explicit Guarded(int64_t bytes)
      : bytes_(bytes), all_(static_cast<size_t>(bytes + 2 * kGuard + 64), kMark) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(all_.data()) + kGuard;
    return all_.data() + kGuard + (64 - address % 64) % 64;
  }
  void expect_intact() {
    const std::byte* begin = data();
    for (int64_t i = 1; i <= kGuard; ++i) {
      ASSERT_EQ(begin[-i], kMark) << i << " bytes before";
      ASSERT_EQ(begin[bytes_ + i - 1], kMark) << i << " bytes past the end";
    }
  }

 private:
  static constexpr int64_t kGuard = 256;
  static constexpr std::byte kMark{0xcd};  // as bf16 or f32 a number, as int8 not zero
  int64_t bytes_;
  std::vector<std::byte> all_;
};

struct DotCase {
  int64_t m, n, k;
  bool bias = false, scale = false, residual = false;
  Activation act = Activation::kNone;
};

inline std::string name_of(const DotCase& c) {
  return strf("%ldx%ldx%ld", static_cast<long>(c.m), static_cast<long>(c.n), static_cast<long>(c.k));
}

struct DotProblem {
  DotCase c;
  Floats a, w, bias, scale, residual;

  explicit DotProblem(const DotCase& shape)
      : c(shape),
        a(random_floats(c.m * c.k, 1, 2)),
        w(random_floats(c.n * c.k, 2, 0.2f)),
        bias(random_floats(c.n, 3)),
        scale(random_floats(c.n, 4)),
        residual(random_floats(c.m * c.n, 5)) {}

  Epilogue epilogue() const {
    return {c.bias ? bias.data() : nullptr, c.act, c.scale ? scale.data() : nullptr,
            c.residual ? residual.data() : nullptr, c.n};
  }
};

// Computes a whole GEMM by one call of each function, with guards around all it may touch. `steps_apart`
// gives each tile that many row steps, `cols_apart` that many columns; 0: all. Rows of A and of the result
// lie apart.
inline Floats multiply(const LowpKernels& kernels, const DotProblem& p, int64_t steps_apart = 0,
                       int64_t cols_apart = 0) {
  const DotCase& c = p.c;
  const int64_t lda = c.k + 3, ldc = c.n + 5;
  const int64_t bytes = kernels.row_bytes(c.k), step = kernels.row_step,
                rows = steps_apart ? steps_apart * step : c.m, cols = cols_apart ? cols_apart : c.n;
  Guarded packed(kernels.packed_bytes(c.n, c.k)), a((c.m + step - 1) / step * step * bytes),
      scratch(kernels.tile_scratch_bytes(rows, cols, c.k)), out(((c.m - 1) * ldc + c.n) * 4);
  Floats row_scale(static_cast<size_t>(c.m), std::nanf(""));
  for (int64_t first = 0; first < c.n; first += kernels.cols)
    kernels.pack(p.w.data(), c.n, first, std::min<int64_t>(kernels.cols, c.n - first), c.k, packed.data());
  Floats spread(static_cast<size_t>(c.m * lda), std::nanf(""));
  for (int64_t r = 0; r < c.m; ++r) std::copy_n(&p.a[r * c.k], c.k, &spread[r * lda]);
  kernels.prepare_rows(spread.data(), lda, c.m, c.k, a.data(), row_scale.data());
  auto* result = reinterpret_cast<float*>(out.data());
  for (int64_t row = 0; row < c.m; row += rows) {
    Epilogue epilogue = p.epilogue();
    if (epilogue.residual) epilogue.residual += row * c.n;
    for (int64_t column = 0; column < c.n; column += cols)
      kernels.tile({a.data() + row * bytes, bytes, row_scale.data() + row, packed.data(), result + row * ldc,
                    ldc, std::min(rows, c.m - row), c.n, c.k, column, std::min(column + cols, c.n), epilogue,
                    reinterpret_cast<float*>(scratch.data())});
  }
  for (Guarded* each : {&packed, &a, &scratch, &out}) each->expect_intact();
  Floats dense;
  for (int64_t r = 0; r < c.m; ++r) dense.insert(dense.end(), result + r * ldc, result + r * ldc + c.n);
  return dense;
}

}  // namespace vitrail::testing
