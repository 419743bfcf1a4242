// Sums of GEMMs by dot-product instructions, vectors and tiles: over emulated instructions everywhere, over
// the real ones where the CPU has them. Layouts and tails are compared with plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend/cpu_dot_levels.h"
#include "backend/cpu_dot_problem.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

// Rows around 12, 16 and 32; columns around 16, 32 and the task's 128; k around a step and several blocks.
const DotCase kDotCases[] = {
    {1, 1, 1},
    {1, 16, 31, true},
    {2, 17, 33, true, true},
    {11, 32, 64, true, true, true},
    {12, 33, 65, false, false, true},
    {16, 15, 127},
    {17, 48, 128, true, false, false, Activation::kGeluErf},
    {31, 65, 96, true, true, true, Activation::kGeluTanh},
    {32, 130, 385},
    {33, 127, 769, true, false, true},
    {50, 192, 192, true, false, false, Activation::kGeluErf},
    {65, 31, 777, false, true},
    {13, 40, 1537, true, false, true},
    {49, 40, 1537},
};

float rounded_to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float as_it_is(float x) {
  return x;
}

// Applies the level's own epilogue to sums of rounded values made here, so that only the sums are judged.
void expect_sums(const IsaKernels& isa, const DotProblem& p, float (*round)(float), const Floats& got) {
  const DotCase& c = p.c;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0, magnitude = 1;
      for (int64_t k = 0; k < c.k; ++k) {
        const double term =
            static_cast<double>(round(p.a[i * c.k + k])) * static_cast<double>(round(p.w[j * c.k + k]));
        sum += term;
        magnitude += std::abs(term);
      }
      const auto value = static_cast<float>(sum);
      float want = 0;
      Epilogue epilogue = p.epilogue();
      if (epilogue.bias) epilogue.bias += j;
      if (epilogue.scale) epilogue.scale += j;
      if (epilogue.residual) epilogue.residual += i * c.n + j;
      GemmTile one{.c = &want, .ldc = 1, .rows = 1, .n = 1, .k = c.k, .epilogue = epilogue};
      one.col_end = 1;
      isa.finish_tile(one, &value, 1);
      const double tolerance = 2 * sum_tolerance(DType::kF32, c.k, magnitude);
      ASSERT_NEAR(got[i * c.n + j], want, tolerance) << "row " << i << " column " << j;
    }
  }
}

// Runs all cases by one of a level's GEMMs, where it has it.
void expect_sums_of_all_cases(LowpKernels IsaKernels::*gemms, float (*round)(float)) {
  for_every_dot_level([&](const IsaKernels& isa) {
    if (!(isa.*gemms).tile) return;
    for (const DotCase& c : kDotCases) {
      SCOPED_TRACE(name_of(c));
      const DotProblem problem(c);
      expect_sums(isa, problem, round, multiply(isa.*gemms, problem));
    }
  });
}

TEST(CpuDot, Bf16SumsMatchPlainLoops) {
  expect_sums_of_all_cases(&IsaKernels::bf16, rounded_to_bf16);
}

// Three parts hold all of an f32, and what is left out of their GEMMs is less than its last bit.
TEST(CpuDot, SumsByPartsAreThoseOfF32) {
  expect_sums_of_all_cases(&IsaKernels::split, as_it_is);
}

// Numbers of 24 bits times powers of two come out as they are, whatever part a bit falls into; and so does
// what the middle parts make together.
TEST(CpuDot, PartsLoseNoBit) {
  for_every_dot_level([](const IsaKernels& isa) {
    if (!isa.split.tile) return;
    Floats whole = {0x1.ff0002p0f, 0x1.fefffep0f, -0x1.00fffep0f, 0x1.ffp0f};
    for (int i = 0; i < 36; ++i)
      whole.push_back(std::ldexp(1.0f + 0x1.fffffep-1f / static_cast<float>(i + 1), i - 20));
    Floats powers(whole.size());
    for (size_t i = 0; i < powers.size(); ++i)
      powers[i] = std::ldexp(i % 2 ? -1.0f : 1.0f, static_cast<int>(i) - 16);
    const Floats middles(whole.size(), 1 + 0x1p-10f);
    const auto check = [&](const Floats& a, const Floats& w) {
      const auto count = static_cast<int64_t>(whole.size());
      DotProblem p({count, count, 1});
      p.a = a, p.w = w;
      const Floats got = multiply(isa.split, p);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < count; ++j) ASSERT_EQ(got[i * count + j], a[i] * w[j]) << i << " " << j;
    };
    check(whole, powers);
    check(powers, whole);
    check(middles, middles);
  });
}

// Integer sums are exact and rounding is the same everywhere, so results are those of the level that has no
// such instruction, bit for bit.
TEST(CpuDot, Int8IsThatOfTheBaseline) {
  for_every_dot_level([](const IsaKernels& isa) {
    const LowpKernels& plain = isa_kernels(IsaLevel::kBaseline).int8;
    for (const DotCase& c : kDotCases) {
      SCOPED_TRACE(name_of(c));
      const DotProblem problem({c.m, c.n, c.k});
      EXPECT_TRUE(same_bits(multiply(isa.int8, problem), multiply(plain, problem)));
    }
  });
}

// Values that int8 holds exactly give an exact GEMM.
TEST(CpuDot, Int8OfSmallIntegersIsExact) {
  for_every_dot_level([](const IsaKernels& isa) {
    DotProblem p({19, 37, 150, true, false, true});
    for (size_t i = 0; i < p.a.size(); ++i) p.a[i] = static_cast<float>(static_cast<int>(i * 31 % 255) - 127);
    for (size_t i = 0; i < p.w.size(); ++i) p.w[i] = static_cast<float>(static_cast<int>(i * 57 % 255) - 127);
    for (int64_t i = 0; i < p.c.m; ++i) p.a[i * p.c.k] = 127;
    for (int64_t j = 0; j < p.c.n; ++j) p.w[j * p.c.k] = -127;
    const Floats got = multiply(isa.int8, p);
    for (int64_t i = 0; i < p.c.m; ++i) {
      for (int64_t j = 0; j < p.c.n; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < p.c.k; ++k) sum += p.a[i * p.c.k + k] * p.w[j * p.c.k + k];
        ASSERT_EQ(got[i * p.c.n + j], sum + p.bias[j] + p.residual[i * p.c.n + j]) << i << " " << j;
      }
    }
  });
}

}  // namespace
}  // namespace vitrail
