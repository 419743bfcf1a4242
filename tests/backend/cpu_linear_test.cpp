// Linears with packed weights (our own kernels) and by oneDNN against plain loops in f64.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/onednn.h"
#include "backend/cpu_test_util.h"
#include "base/error.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct LinearCase {
  int64_t m, n, k;
  bool norm = false, bias = false, scale = false, residual = false;
  Activation act = Activation::kNone;
};

// Tokens and widths of small and real models, widths around the panels of every level, K in several blocks.
const LinearCase kLinearCases[] = {
    {1, 1, 1},
    {1, 3, 16, false, true},
    {5, 17, 3, false, true, true, true},
    {5, 16, 17, true, true},
    {7, 33, 256, false, false, true},
    {6, 65, 257, false, false, false, true},
    {50, 64, 64, true, true, false, false, Activation::kGeluErf},
    {65, 192, 192, false, true, true, true, Activation::kGeluTanh},
    {65, 95, 384, true, true, true, true, Activation::kGeluErf},
    {197, 192, 768, true, true, false, false, Activation::kGeluErf},
    {197, 1000, 64, false, true},
    {257, 384, 384, false, true, true, true},
    {577, 127, 192, true, true, false, true},
    {13, 40, 1537, false, true, false, true},
};

double activated(Activation act, double x) {
  if (act == Activation::kGeluErf) return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  if (act == Activation::kGeluTanh)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return x;
}

struct LinearProblem {
  LinearCase c;
  Floats a, w, bias, scale, residual, gamma, beta;
  std::vector<double> want, tolerance;
  static constexpr float kEps = 1e-6f;

  explicit LinearProblem(const LinearCase& shape)
      : c(shape),
        a(random_floats(c.m * c.k, 1, 2)),
        w(random_floats(c.n * c.k, 2, 0.2f)),
        bias(random_floats(c.n, 3)),
        scale(random_floats(c.n, 4)),
        residual(random_floats(c.m * c.n, 5)),
        gamma(random_floats(c.k, 6)),
        beta(random_floats(c.k, 7)) {
    std::vector<double> row(static_cast<size_t>(c.k));
    for (int64_t i = 0; i < c.m; ++i) {
      fill_row(i, row);
      for (int64_t j = 0; j < c.n; ++j) add_output(i, j, row);
    }
  }

  void fill_row(int64_t i, std::vector<double>& row) const {
    const float* x = a.data() + i * c.k;
    row.assign(x, x + c.k);
    if (!c.norm) return;
    double mean = 0, var = 0;
    for (double v : row) mean += v / static_cast<double>(c.k);
    for (double v : row) var += (v - mean) * (v - mean) / static_cast<double>(c.k);
    for (size_t p = 0; p < row.size(); ++p)
      row[p] = (row[p] - mean) / std::sqrt(var + kEps) * gamma[p] + beta[p];
  }

  void add_output(int64_t i, int64_t j, const std::vector<double>& row) {
    const auto at = static_cast<size_t>(j);
    double sum = c.bias ? bias[at] : 0, magnitude = 1;
    for (size_t p = 0; p < row.size(); ++p) {
      const double term = row[p] * w[at * row.size() + p];
      sum += term;
      magnitude += std::abs(term);
    }
    double value = activated(c.act, sum) * (c.scale ? scale[at] : 1);
    if (c.residual) value += residual[static_cast<size_t>(i * c.n + j)];
    want.push_back(value);
    tolerance.push_back(sum_tolerance(DType::kF32, c.k, magnitude));
  }

  LinearArgs args(const float* packed, float* out) const {
    LinearArgs args{.a = a.data(),
                    .lda = c.k,
                    .packed = packed,
                    .c = out,
                    .ldc = c.n,
                    .m = c.m,
                    .n = c.n,
                    .k = c.k,
                    .norm = {},
                    .epilogue = {}};
    if (c.norm) args.norm = {gamma.data(), beta.data(), kEps};
    args.epilogue = {c.bias ? bias.data() : nullptr, c.act, c.scale ? scale.data() : nullptr,
                     c.residual ? residual.data() : nullptr, c.n};
    return args;
  }

  void expect_close(const Floats& got, const char* what) const {
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::abs(got[i] - want[i]) <= tolerance[i]) continue;
      FAIL() << what << " " << c.m << "x" << c.n << "x" << c.k << " at row " << i / static_cast<size_t>(c.n)
             << " column " << i % static_cast<size_t>(c.n) << ": " << got[i] << ", expected " << want[i]
             << " +- " << tolerance[i];
    }
  }
};

Floats own(const LinearProblem& p, const IsaKernels& isa, int threads, CpuParallelism parallel = {}) {
  TestContext test(threads, isa, linear_scratch(isa, p.c.m, p.c.n, p.c.k, p.c.norm));
  Floats packed(static_cast<size_t>(isa.packed_elems(p.c.n, p.c.k)), std::nanf(""));
  parallel_pack_weights(test.context(), p.w.data(), p.c.n, p.c.k, packed.data());
  Floats out(static_cast<size_t>(p.c.m * p.c.n), std::nanf(""));
  parallel_linear(test.context(parallel), p.args(packed.data(), out.data()));
  return out;
}

Floats by_library(const GemmLibrary& library, const LinearProblem& p, const IsaKernels& isa, int threads) {
  TestContext test(threads, isa, library_linear_scratch(isa, p.c.m, p.c.n, p.c.k, p.c.norm));
  Floats out(static_cast<size_t>(p.c.m * p.c.n), std::nanf(""));
  parallel_library_linear(test.context(), library, p.args(nullptr, out.data()), p.w.data());
  return out;
}

class CpuLinear : public ::testing::TestWithParam<LinearCase> {};

TEST_P(CpuLinear, EveryLevelAgreesWithDoubleForAnyNumberOfThreads) {
  const LinearProblem problem(GetParam());
  for (IsaLevel level : available_isa_levels()) {
    const IsaKernels& isa = isa_kernels(level);
    const Floats one = own(problem, isa, 1);
    problem.expect_close(one, isa.name);
    for (int threads : {2, 3, 8})
      EXPECT_TRUE(same_bits(one, own(problem, isa, threads))) << isa.name << threads;
    EXPECT_TRUE(same_bits(one, own(problem, isa, 3, {.heads = false, .rows = false, .softmax = false})));
  }
}

void expect_library_agrees(const GemmLibrary& library, const LinearCase& shape) {
  const LinearProblem problem(shape);
  const IsaKernels& isa = isa_kernels(best_isa());
  const Floats one = by_library(library, problem, isa, 1);
  problem.expect_close(one, library.version.c_str());
  for (int threads : {2, 3, 8})
    EXPECT_TRUE(same_bits(one, by_library(library, problem, isa, threads))) << threads;
}

// A library of plain loops stands in for oneDNN where that is not installed.
void plain_sgemm(int64_t rows, int64_t cols, int64_t k, const float* a, int64_t lda, const float* w,
                 float* c) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += static_cast<double>(a[i * lda + p]) * static_cast<double>(w[j * k + p]);
      c[i * cols + j] = static_cast<float>(sum);
    }
}

TEST_P(CpuLinear, ALibrarysTilesAgreeWithDoubleForAnyNumberOfThreads) {
  expect_library_agrees({.missing = "", .version = "plain loops", .sgemm = plain_sgemm}, GetParam());
}

TEST(CpuLibrary, OneThatIsMissingIsSaid) {
  const LinearProblem problem(LinearCase{1, 1, 1});
  try {
    by_library({.missing = "it is nowhere", .version = ""}, problem, isa_kernels(best_isa()), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_EQ(error.message(), "it is nowhere");
    EXPECT_EQ(error.hint(), "install the library or use packed weights");
  }
}

TEST_P(CpuLinear, OneDnnAgreesWithDoubleForAnyNumberOfThreads) {
  if (!onednn().missing.empty()) GTEST_SKIP() << onednn().missing;
  expect_library_agrees(onednn(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuLinear, ::testing::ValuesIn(kLinearCases), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

// Tests of the library are skipped where it is missing, so it must not be called missing where it is there.
TEST(OneDnn, IsTakenWhereItIsInstalled) {
  void* handle = nullptr;
  for (const char* name : {"libdnnl.so.2", "libdnnl.so.3"})
    if (!handle) handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"dnnl_sgemm", "dnnl_version", "omp_set_num_threads", "omp_get_max_threads"})
    if (!handle || !::dlsym(handle, name)) GTEST_SKIP() << "no oneDNN here that has all that is called";
  EXPECT_EQ(onednn().missing, "");
  EXPECT_TRUE(onednn().version.starts_with("oneDNN ")) << onednn().version;
}

// The body of one of the processes below. A library that guards its state too little fails at its first use,
// when several threads call it at once: so nothing may have called it before, and nothing has in a process of
// its own.
TEST(OneDnnUnderLoad, DISABLED_FirstGemmsOfAProcess) {
  const LinearProblem problem({577, 127, 192, true, true, false, true});
  for (int gemm = 0; gemm < 8 && !HasFailure(); ++gemm)
    problem.expect_close(by_library(onednn(), problem, isa_kernels(best_isa()), 8), "under load");
}

// Several such processes at a time, with 8 threads each: more than the machine has cores.
TEST(OneDnnUnderLoad, FreshProcessesWithMoreThreadsThanCoresAgreeWithDouble) {
  if (!onednn().missing.empty()) GTEST_SKIP() << onednn().missing;
  const int rounds = std::getenv("VITRAIL_TEST_LONG") ? 150 : 6;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    pid_t children[4];
    for (pid_t& child : children) {
      ASSERT_GE(child = ::fork(), 0);
      if (child != 0) continue;
      ::execl("/proc/self/exe", "test_backend", "--gtest_also_run_disabled_tests",
              "--gtest_filter=OneDnnUnderLoad.DISABLED_FirstGemmsOfAProcess", nullptr);
      ::_exit(127);
    }
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << "round " << round;
    }
  }
}

// A GEMM may accumulate into its own output, also when K takes several blocks.
TEST(CpuLinearInPlace, ResidualMayBeTheOutput) {
  for (int64_t k : {64, 700}) {
    const LinearProblem problem({30, 70, k, false, true, false, true});
    for (IsaLevel level : available_isa_levels()) {
      const IsaKernels& isa = isa_kernels(level);
      TestContext test(2, isa, linear_scratch(isa, 30, 70, k, false));
      Floats packed(static_cast<size_t>(isa.packed_elems(70, k))), out = problem.residual;
      parallel_pack_weights(test.context(), problem.w.data(), 70, k, packed.data());
      LinearArgs args = problem.args(packed.data(), out.data());
      args.epilogue.residual = out.data();
      parallel_linear(test.context(), args);
      problem.expect_close(out, isa.name);
    }
  }
}

TEST(CpuLinearScratch, TooLittleIsRefused) {
  const LinearProblem problem({5, 16, 16});
  const IsaKernels& isa = isa_kernels(best_isa());
  TestContext test(1, isa, {});
  Floats out(5 * 16);
  EXPECT_THROW(parallel_linear(test.context(), problem.args(problem.w.data(), out.data())), Error);
}

}  // namespace
}  // namespace vitrail
