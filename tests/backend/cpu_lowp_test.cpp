// GEMMs in bf16 and int8 at every level against the reference backend's, for any number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/lowp/lowp_gemm.h"
#include "backend/cpu_test_util.h"
#include "backend/ref/kernels.h"
#include "base/error.h"
#include "ops/linear.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct LowpCase {
  int64_t m, n, k;
  bool norm = false, epilogue = false;
};

// Tokens of real models, odd widths, widths around the panels of every level, K in several blocks.
const LowpCase kLowpCases[] = {
    {1, 1, 1},
    {1, 192, 768, false, true},
    {3, 33, 2},
    {5, 17, 3, false, true},
    {7, 16, 31, true},
    {50, 95, 129, true, true},
    {65, 64, 257, false, true},
    {65, 192, 192, true},
    {97, 200, 513, false, true},
    {197, 127, 384, true, true},
    {197, 31, 1025},
    {401, 40, 65, false, true},
};

// Runs the op on the reference backend.
Floats reference(Arithmetic arithmetic, const LowpCase& c, const Floats& x, const Floats& w) {
  const LinearOp op(arithmetic);
  const std::vector<TensorDesc> ins = {{DType::kF32, {{'N', c.m}, {'D', c.k}}},
                                       {DType::kF32, {{'F', c.n}, {'D', c.k}}}};
  const std::vector<TensorDesc> outs = op.infer(ins);
  const DeviceInfo device;
  const Kernel* kernel = ref_backend().choose({op, ins, outs}, device).kernel;
  Floats out(static_cast<size_t>(c.m * c.n));
  std::vector<std::byte> scratch(kernel->scratch_bytes({op, ins, outs}, device));
  ThreadPool pool(2);
  const TensorView in_views[] = {{const_cast<float*>(x.data()), ins[0]},
                                 {const_cast<float*>(w.data()), ins[1]}};
  const TensorView out_views[] = {{out.data(), outs[0]}};
  kernel->run({op, in_views, out_views, scratch, {pool, device}});
  return out;
}

struct LowpProblem {
  LowpCase c;
  Floats x, w, bias, scale, residual, gamma, beta;

  explicit LowpProblem(const LowpCase& shape)
      : c(shape),
        x(random_floats(c.m * c.k, 1, 3)),
        w(random_floats(c.n * c.k, 2, 0.2f)),
        bias(random_floats(c.n, 3)),
        scale(random_floats(c.n, 4)),
        residual(random_floats(c.m * c.n, 5)),
        gamma(random_floats(c.k, 6)),
        beta(random_floats(c.k, 7)) {}

  LinearArgs args(float* out) const {
    LinearArgs args{.a = x.data(), .lda = c.k, .c = out, .ldc = c.n, .m = c.m, .n = c.n, .k = c.k};
    if (c.norm) args.norm = {gamma.data(), beta.data(), 1e-6f};
    if (c.epilogue) args.epilogue = {bias.data(), Activation::kGeluErf, scale.data(), residual.data(), c.n};
    return args;
  }

  // Normalises as this level does, to the bit: rounding is then the same in both.
  Floats rows(const IsaKernels& isa) const {
    Floats result = x;
    if (c.norm)
      isa.layernorm_rows({x.data(), c.k, result.data(), c.k, c.m, c.k, gamma.data(), beta.data(), 1e-6f});
    return result;
  }

  void expect_close(const IsaKernels& isa, Arithmetic arithmetic, const Floats& got) const {
    const Floats a = rows(isa), gemms = reference(arithmetic, c, a, w);
    for (size_t at = 0; at < got.size(); ++at) {
      const size_t i = at / static_cast<size_t>(c.n), j = at % static_cast<size_t>(c.n);
      double magnitude = 1 + std::abs(static_cast<double>(gemms[at])), want = gemms[at];
      for (int64_t p = 0; p < c.k; ++p)
        magnitude += static_cast<double>(std::abs(a[i * static_cast<size_t>(c.k) + static_cast<size_t>(p)] *
                                                  w[j * static_cast<size_t>(c.k) + static_cast<size_t>(p)]));
      if (c.epilogue) {
        const double sum = want + static_cast<double>(bias[j]);
        want = 0.5 * sum * std::erfc(-sum / std::sqrt(2.0)) * static_cast<double>(scale[j]) +
               static_cast<double>(residual[at]);
        magnitude += 1;
      }
      // Integer sums are exact.
      const int64_t terms = arithmetic == Arithmetic::kInt8 ? 1 : c.k;
      ASSERT_NEAR(static_cast<double>(got[at]), want, sum_tolerance(DType::kF32, terms, magnitude))
          << isa.name << " " << enum_name(arithmetic) << " row " << i << " column " << j;
    }
  }
};

const LowpKernels& kernels_of(const IsaKernels& isa, Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kInt8 ? isa.int8 : isa.bf16;
}

Floats own(const LowpProblem& p, const IsaKernels& isa, Arithmetic arithmetic, int threads) {
  const LowpKernels& kernels = kernels_of(isa, arithmetic);
  TestContext test(threads, isa, lowp_linear_scratch(kernels, p.c.m, p.c.n, p.c.k, p.c.norm));
  std::vector<float> room(static_cast<size_t>(kernels.packed_bytes(p.c.n, p.c.k)) / 4 + 17);
  void* start = room.data();
  size_t space = room.size() * 4;
  auto* packed = static_cast<std::byte*>(std::align(64, space - 64, start, space));
  parallel_lowp_pack(test.context(), kernels, p.w.data(), p.c.n, p.c.k, packed);
  Floats out(static_cast<size_t>(p.c.m * p.c.n), std::nanf(""));
  parallel_lowp_linear(test.context(), kernels, p.args(out.data()), packed);
  return out;
}

class CpuLowp : public ::testing::TestWithParam<LowpCase> {};

TEST_P(CpuLowp, EveryLevelAgreesWithTheReferenceForAnyNumberOfThreads) {
  const LowpProblem problem(GetParam());
  for_every_level([&](const IsaKernels& isa) {
    for (Arithmetic arithmetic : {Arithmetic::kBF16, Arithmetic::kInt8}) {
      const Floats one = own(problem, isa, arithmetic, 1);
      problem.expect_close(isa, arithmetic, one);
      for (int threads : {2, 3, 8, 16})
        EXPECT_TRUE(same_bits(one, own(problem, isa, arithmetic, threads))) << threads;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuLowp, ::testing::ValuesIn(kLowpCases), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

// A row or output that is not finite affects itself alone; zeros and values too small for a scale give zero.
TEST(CpuLowpValues, WhatIsNotFiniteStaysInItsRowAndColumn) {
  constexpr int64_t kM = 20, kN = 35, kK = 50;
  LowpProblem problem({kM, kN, kK});
  const auto row = [&](Floats& values, int64_t r) { return values.begin() + r * kK; };
  row(problem.x, 3)[7] = std::nanf("");
  row(problem.x, 5)[49] = INFINITY;
  std::fill_n(row(problem.x, 8), kK, 0.0f);
  std::fill_n(row(problem.x, 9), kK, 1e-42f);
  row(problem.w, 33)[0] = -std::nanf("");
  std::fill_n(row(problem.w, 34), kK, 0.0f);
  for_every_level([&](const IsaKernels& isa) {
    for (Arithmetic arithmetic : {Arithmetic::kBF16, Arithmetic::kInt8}) {
      const Floats got = own(problem, isa, arithmetic, 2),
                   want = reference(arithmetic, problem.c, problem.x, problem.w);
      for (int64_t i = 0; i < kM; ++i)
        for (int64_t j = 0; j < kN; ++j) {
          const float value = got[static_cast<size_t>(i * kN + j)];
          const bool spoilt = i == 3 || i == 5 || j == 33;
          EXPECT_EQ(std::isfinite(value), !spoilt) << enum_name(arithmetic) << " " << i << " " << j;
          EXPECT_EQ(std::isfinite(want[static_cast<size_t>(i * kN + j)]), !spoilt);
          const bool nothing = i == 8 || j == 34, next_to_nothing = i == 9;
          if (!spoilt && (nothing || next_to_nothing)) {
            EXPECT_NEAR(value, 0.0f, nothing ? 0.0f : 1e-38f);
          }
        }
    }
  });
}

TEST(CpuLowpScratch, TooLittleIsRefused) {
  const LowpProblem problem({5, 16, 16});
  const IsaKernels& isa = isa_kernels(best_isa());
  TestContext test(1, isa, {});
  Floats out(5 * 16);
  EXPECT_THROW(parallel_lowp_linear(test.context(), isa.int8, problem.args(out.data()), nullptr), Error);
}

}  // namespace
}  // namespace vitrail
