// GEMMs by dot-product instructions, whatever they sum up: tiles and threads change nothing, values that are
// no numbers stay where they are, and the levels are those of the CPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "backend/cpu_dot_levels.h"
#include "backend/cpu_dot_problem.h"

namespace vitrail {
namespace {

using namespace testing;

// The parts of `isa` that are tested here: GEMMs by bf16, int8 and bf16 parts, where it has them.
std::vector<const LowpKernels*> all_gemms(const IsaKernels& isa) {
  std::vector<const LowpKernels*> all = {&isa.bf16, &isa.int8};
  if (isa.split.tile) all.push_back(&isa.split);
  return all;
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
