// GEMMs by dot-product instructions, vectors and tiles: over emulated instructions everywhere, over the real
// ones where the CPU has them. Layouts, tails and ranges are compared with plain loops.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "backend/cpu/lowp/lowp_gemm.h"
#include "backend/cpu_dot_levels.h"
#include "backend/cpu_test_util.h"
#include "base/error.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

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

std::string name_of(const DotCase& c) {
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
Floats multiply(const LowpKernels& kernels, const DotProblem& p, int64_t steps_apart = 0,
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

float rounded_to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// The parts of `isa` that are tested here: GEMMs by bf16, int8 and bf16 parts, where it has them.
std::vector<const LowpKernels*> all_gemms(const IsaKernels& isa) {
  std::vector<const LowpKernels*> all = {&isa.bf16, &isa.int8};
  if (isa.split.tile) all.push_back(&isa.split);
  return all;
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

TEST(CpuDot, TilesDoNotChangeResults) {
  for_every_dot_level([](const IsaKernels& isa) {
    const DotProblem problem({50, 136, 400, true, true, true, Activation::kGeluErf});
    for (const LowpKernels* kernels : all_gemms(isa)) {
      const Floats whole = multiply(*kernels, problem);
      for (int64_t steps : {1, 2, 3})
        for (int64_t cols : {32, 96})
          EXPECT_TRUE(same_bits(multiply(*kernels, problem, steps, cols), whole)) << steps << " x " << cols;
    }
  });
}

// Rows that are not numbers stay so, and only they; rows and columns of zeros give zero.
TEST(CpuDot, SpecialRows) {
  for_every_dot_level([](const IsaKernels& isa) {
    DotProblem p({9, 40, 70});
    const auto value = [&](int64_t row, int64_t at) -> float& { return p.a[row * p.c.k + at]; };
    value(1, 69) = std::nanf("");
    value(7, 3) = std::bit_cast<float>(0x7fffffffu);
    value(8, 3) = std::bit_cast<float>(0xff800001u);
    value(3, 0) = std::numeric_limits<float>::infinity();
    std::fill_n(&value(5, 0), p.c.k, 0.0f);
    std::fill_n(&value(6, 0), p.c.k, 1e-42f);
    std::fill_n(&p.w[33 * p.c.k], p.c.k, 0.0f);
    for (const LowpKernels* kernels : all_gemms(isa)) {
      const Floats got = multiply(*kernels, p);
      for (int64_t j = 0; j < p.c.n; ++j) {
        for (int64_t row : {1, 7, 8}) EXPECT_TRUE(std::isnan(got[row * p.c.n + j])) << row << " " << j;
        EXPECT_FALSE(std::isfinite(got[3 * p.c.n + j])) << j;
        for (int64_t row : {0, 2, 4}) EXPECT_TRUE(std::isfinite(got[row * p.c.n + j])) << row << " " << j;
        for (int64_t row : {5, 6}) EXPECT_NEAR(got[row * p.c.n + j], 0, 1e-38) << row << " " << j;
      }
      for (int64_t row : {0, 2, 4}) EXPECT_EQ(got[row * p.c.n + 33], 0);
    }
  });
}

// Does the same for weights, by columns; a value that bf16 cannot hold is not finite in its parts.
TEST(CpuDot, SpecialColumns) {
  for_every_dot_level([](const IsaKernels& isa) {
    DotProblem p({20, 40, 70});
    p.w[3 * p.c.k + 5] = std::bit_cast<float>(0x7fffffffu);
    p.w[17 * p.c.k + 69] = std::bit_cast<float>(0xff800001u);
    p.w[39 * p.c.k] = std::nanf("");
    for (const LowpKernels* kernels : all_gemms(isa)) {
      const Floats got = multiply(*kernels, p);
      for (int64_t i = 0; i < p.c.m; ++i)
        for (int64_t j = 0; j < p.c.n; ++j)
          EXPECT_EQ(std::isnan(got[i * p.c.n + j]), j == 3 || j == 17 || j == 39) << i << " " << j;
    }
    if (!isa.split.tile) return;
    p = DotProblem({2, 3, 4});
    p.a[1] = 3.4e38f, p.w[2 * p.c.k] = -3.4e38f;
    const Floats got = multiply(isa.split, p);
    for (int64_t at : {0, 1, 2, 5}) EXPECT_FALSE(std::isfinite(got[at])) << at;
    for (int64_t at : {3, 4}) EXPECT_TRUE(std::isfinite(got[at])) << at;
  });
}

// The driver that serves every level, on these kernels, with rows normalised first: the number of threads
// changes nothing, and the result equals that of its parts.
TEST(CpuDot, ThreadsDoNotChangeResults) {
  for_every_dot_level([](const IsaKernels& isa) {
    for (const DotCase& c :
         {DotCase{197, 160, 96, true, false, true, Activation::kGeluErf}, {50, 40, 1600, true}}) {
      SCOPED_TRACE(name_of(c));
      const DotProblem p(c);
      const Floats gamma = random_floats(c.k, 6), beta = random_floats(c.k, 7);
      DotProblem normed = p;
      isa.layernorm_rows({p.a.data(), c.k, normed.a.data(), c.k, c.m, c.k, gamma.data(), beta.data(), 1e-6f});
      for (const LowpKernels* kernels : all_gemms(isa)) {
        const Floats want = multiply(*kernels, normed);
        for (int threads : {1, 2, 3, 8, 16}) {
          TestContext context(threads, isa, lowp_linear_scratch(*kernels, c.m, c.n, c.k, true));
          std::vector<std::byte> packed(static_cast<size_t>(kernels->packed_bytes(c.n, c.k)));
          parallel_lowp_pack(context.context(), *kernels, p.w.data(), c.n, c.k, packed.data());
          Floats out(static_cast<size_t>(c.m * c.n), std::nanf(""));
          parallel_lowp_linear(context.context(), *kernels,
                               {.a = p.a.data(),
                                .lda = c.k,
                                .packed = nullptr,
                                .c = out.data(),
                                .ldc = c.n,
                                .m = c.m,
                                .n = c.n,
                                .k = c.k,
                                .norm = {gamma.data(), beta.data(), 1e-6f},
                                .epilogue = p.epilogue()},
                               packed.data());
          EXPECT_TRUE(same_bits(out, want)) << threads << " threads";
        }
      }
    }
  });
}

// The levels follow what the kernel reports of the CPU.
TEST(CpuDot, LevelsFollowTheProcessor) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0) != 0) continue;
  if (line.rfind("flags", 0) != 0) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  std::istringstream words(line);
  const std::vector<std::string> flags{std::istream_iterator<std::string>(words), {}};
  const auto has = [&](const char* flag) { return std::count(flags.begin(), flags.end(), flag) > 0; };
  bool vnni = false, amx = false;
  for (IsaLevel level : available_isa_levels()) {
    vnni = vnni || level == IsaLevel::kVnni;
    amx = amx || level == IsaLevel::kAmx;
  }
  EXPECT_EQ(vnni, has("avx512_vnni") && has("avx512_bf16"));
  EXPECT_TRUE(!amx || (vnni && has("amx_tile") && has("amx_bf16") && has("amx_int8")));
}

}  // namespace
}  // namespace vitrail
