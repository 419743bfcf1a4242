// GEMMs of bf16 tensors and their gradients by dot-product instructions, over emulated ones everywhere and
// over the real ones where the CPU has them, against plain loops in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/lowp/bf16_tensor.h"
#include "backend/cpu_dot_levels.h"
#include "backend/cpu_test_util.h"
#include "tensor/dtype.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

using Bf16s = std::vector<uint16_t>;

Bf16s random_bf16(int64_t count, uint32_t seed) {
  Bf16s values;
  for (float value : random_floats(count, seed)) values.push_back(f32_to_bf16(value));
  return values;
}

struct Bf16Case {
  int64_t m, n, k;
  bool by_inputs = false;
};
const Bf16Case kBf16Cases[] = {{1, 1, 32},          {5, 17, 64, true},   {33, 40, 96},       {50, 130, 416},
                               {65, 33, 800, true}, {197, 96, 32, true}, {31, 160, 64, true}};

struct Sum {
  double value, magnitude;
};
Sum dot(const Bf16s& a, int64_t a_at, int64_t a_step, const Bf16s& b, int64_t b_at, int64_t b_step,
        int64_t count) {
  Sum sum{0, 1};
  for (int64_t i = 0; i < count; ++i) {
    const double term = static_cast<double>(bf16_to_f32(a[a_at + i * a_step])) *
                        static_cast<double>(bf16_to_f32(b[b_at + i * b_step]));
    sum.value += term;
    sum.magnitude += std::abs(term);
  }
  return sum;
}

struct Linear {
  Bf16Case c;
  Bf16s a = random_bf16(c.m * c.k, 1), w = random_bf16(c.n * c.k, 2);
  Floats bias = random_floats(c.n, 3), residual = random_floats(c.m * c.n, 4);

  Bf16LinearArgs args() const {
    return {.a = a.data(), .w = w.data(), .w_by_inputs = c.by_inputs, .m = c.m, .n = c.n, .k = c.k};
  }
  void run(const IsaKernels& isa, const Bf16LinearArgs& gemm, int threads) const {
    TestContext context(threads, isa, bf16_linear_scratch(isa, c.m, c.n, c.k));
    parallel_bf16_linear(context.context(), gemm);
  }
  Bf16s plain(const IsaKernels& isa, int threads = 2) const {
    Bf16s out(static_cast<size_t>(c.m * c.n), 0x7fc0);
    Bf16LinearArgs gemm = args();
    gemm.out = out.data();
    run(isa, gemm, threads);
    return out;
  }
};

TEST(CpuBf16Tensor, LinearMatchesPlainLoops) {
  for_every_dot_level([](const IsaKernels& isa) {
    for (const Bf16Case& c : kBf16Cases) {
      const Linear linear{c};
      const Bf16s out = linear.plain(isa);
      for (int64_t i = 0; i < c.m * c.n; ++i) {
        const int64_t column = i % c.n;
        const Sum sum = c.by_inputs ? dot(linear.a, i / c.n * c.k, 1, linear.w, column, c.n, c.k)
                                    : dot(linear.a, i / c.n * c.k, 1, linear.w, column * c.k, 1, c.k);
        const double tolerance = sum_tolerance(DType::kF32, c.k, sum.magnitude) +
                                 unit_roundoff(DType::kBF16) * std::abs(sum.value);
        ASSERT_NEAR(bf16_to_f32(out[i]), sum.value, tolerance)
            << c.m << "x" << c.n << "x" << c.k << " at " << i;
      }
    }
  });
}

// Bias and residual round as they would in nodes of their own; the residual may be the output.
TEST(CpuBf16Tensor, StepsRoundOneByOne) {
  for_every_dot_level([](const IsaKernels& isa) {
    const Linear linear{{37, 50, 64}};
    const Bf16s plain = linear.plain(isa);
    Bf16s biased(plain.size());
    Floats out = linear.residual;
    Bf16LinearArgs gemm = linear.args();
    gemm.bias = linear.bias.data();
    gemm.out = biased.data();
    linear.run(isa, gemm, 2);
    gemm.out = nullptr, gemm.residual = out.data(), gemm.wide_out = out.data();
    linear.run(isa, gemm, 3);
    for (size_t i = 0; i < plain.size(); ++i) {
      const float bias = linear.bias[i % 50];
      ASSERT_EQ(biased[i], f32_to_bf16(bf16_to_f32(plain[i]) + bias)) << i;
      ASSERT_EQ(out[i], bf16_to_f32(biased[i]) + linear.residual[i]) << i;
    }
  });
}

struct Grad {
  Bf16Case c;
  Bf16s x = random_bf16(c.m * c.k, 1), dy = random_bf16(c.m * c.n, 2);
  Floats before = random_floats(c.n * c.k, 3);

  Floats run(const IsaKernels& isa, bool add, int threads = 2) const {
    Floats dw = add ? before : Floats(before.size(), std::nanf(""));
    TestContext context(threads, isa, bf16_weight_grad_scratch(isa, c.m, c.n, c.k, add));
    parallel_bf16_weight_grad(context.context(), {x.data(), dy.data(), dw.data(), c.m, c.n, c.k, add});
    return dw;
  }
};

// One row, rows in two chunks of which the last is odd, widths around tiles.
const Bf16Case kGrads[] = {{1, 1, 1}, {31, 17, 33}, {64, 48, 40}, {197, 33, 130}, {2100, 50, 35}};

TEST(CpuBf16Tensor, WeightGradMatchesPlainLoops) {
  for_every_dot_level([](const IsaKernels& isa) {
    for (const Bf16Case& c : kGrads) {
      const Grad grad{c};
      const Floats dw = grad.run(isa, false), added = grad.run(isa, true);
      for (int64_t i = 0; i < c.n * c.k; ++i) {
        const Sum sum = dot(grad.dy, i / c.k, c.n, grad.x, i % c.k, c.k, c.m);
        ASSERT_NEAR(dw[i], sum.value, sum_tolerance(DType::kF32, c.m, sum.magnitude))
            << c.m << "x" << c.n << "x" << c.k << " at " << i;
        ASSERT_EQ(added[i], grad.before[i] + dw[i]) << i;
      }
    }
  });
}

// Memory is planned by what a call asks for: sums that are yet to be added take four bytes each.
TEST(CpuBf16Tensor, SumsAreAllThatAddingNeedsMore) {
  for_every_dot_level([](const IsaKernels& isa) {
    for (const Bf16Case& c : kGrads) {
      const ScratchNeed add = bf16_weight_grad_scratch(isa, c.m, c.n, c.k, true),
                        set = bf16_weight_grad_scratch(isa, c.m, c.n, c.k, false);
      EXPECT_EQ(add.shared_bytes - set.shared_bytes, padded_bytes(c.n * c.k)) << c.n << "x" << c.k;
      EXPECT_EQ(add.worker_bytes, set.worker_bytes);
    }
  });
}

TEST(CpuBf16Tensor, ThreadsDoNotChangeResults) {
  for_every_dot_level([](const IsaKernels& isa) {
    const Linear linear{{197, 160, 64, true}};
    const Grad grad{{150, 70, 140}};
    for (int threads : {2, 3, 8, 16}) {
      EXPECT_EQ(linear.plain(isa, threads), linear.plain(isa, 1)) << threads;
      EXPECT_TRUE(same_bits(grad.run(isa, true, threads), grad.run(isa, true, 1))) << threads;
    }
  });
}

}  // namespace
}  // namespace vitrail
