// Gradients of GEMMs against plain loops in f64: of weights, of patch embeddings, of inputs.
#include <gtest/gtest.h>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

struct WeightGradCase {
  int64_t m, n, k;
};

// One row, widths around the panels of every level, rows in several chunks of which the last is odd.
const WeightGradCase kWeightGradCases[] = {{1, 1, 1},      {3, 5, 7},      {16, 17, 33},  {50, 64, 64},
                                           {65, 95, 31},   {257, 33, 100}, {513, 40, 65}, {1030, 48, 19},
                                           {1600, 10, 96}, {400, 60, 1600}};

// dw[n, k] and how far it may be off.
struct Expected {
  std::vector<double> value, tolerance;
};

Expected plain_dw(const WeightGradCase& c, const Floats& x, const Floats& dy, const Floats* before) {
  Expected e;
  for (int64_t n = 0; n < c.n; ++n) {
    for (int64_t k = 0; k < c.k; ++k) {
      double sum = before ? (*before)[static_cast<size_t>(n * c.k + k)] : 0, magnitude = 1;
      for (int64_t m = 0; m < c.m; ++m) {
        const double term =
            static_cast<double>(dy[static_cast<size_t>(m * c.n + n)]) * x[static_cast<size_t>(m * c.k + k)];
        sum += term;
        magnitude += std::abs(term);
      }
      e.value.push_back(sum);
      e.tolerance.push_back(sum_tolerance(DType::kF32, c.m, magnitude));
    }
  }
  return e;
}

void expect_close(const Floats& got, const Expected& want, const char* what) {
  ASSERT_EQ(got.size(), want.value.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want.value[i], want.tolerance[i]) << what << " at " << i;
}

struct CpuWeightGrad : ::testing::TestWithParam<WeightGradCase> {
  WeightGradCase c = GetParam();
  Floats x = random_floats(c.m * c.k, 1), dy = random_floats(c.m * c.n, 2),
         before = random_floats(c.n * c.k, 3);

  Floats run(const IsaKernels& isa, int threads, bool add, CpuParallelism parallel = {}) {
    TestContext test(threads, isa, weight_grad_scratch(isa, c.m, c.n, c.k, add));
    Floats dw = add ? before : Floats(before.size(), std::nanf(""));
    parallel_weight_grad(test.context(parallel), {x.data(), dy.data(), dw.data(), c.m, c.n, c.k, add});
    return dw;
  }
};

TEST_P(CpuWeightGrad, EveryLevelAgreesWithDoubleForAnyNumberOfThreads) {
  for (const bool add : {false, true}) {
    const Expected want = plain_dw(c, x, dy, add ? &before : nullptr);
    for_every_level([&](const IsaKernels& isa) {
      const Floats one = run(isa, 1, add);
      expect_close(one, want, isa.name);
      for (int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(one, run(isa, threads, add))) << threads;
      EXPECT_TRUE(same_bits(one, run(isa, 3, add, {.heads = false, .rows = false, .softmax = false})));
    });
  }
}

// A sum that gains a gradient rounds once, as if the gradient had been written and then added.
TEST_P(CpuWeightGrad, AddingIsWritingThenAdding) {
  for_every_level([&](const IsaKernels& isa) {
    Floats want = run(isa, 2, false);
    for (size_t i = 0; i < want.size(); ++i) want[i] = before[i] + want[i];
    EXPECT_TRUE(same_bits(want, run(isa, 2, true)));
  });
}

// Computes dx = dy w: the weight is stored by the forward GEMM's inputs.
TEST_P(CpuWeightGrad, InputGradientAgreesWithDouble) {
  const Floats w = random_floats(c.n * c.k, 4);
  for_every_level([&](const IsaKernels& isa) {
    Floats one;
    for (int threads : {1, 2, 3, 8}) {
      TestContext test(threads, isa, linear_scratch(isa, c.m, c.k, c.n, false));
      Floats packed(static_cast<size_t>(isa.packed_elems(c.k, c.n)), std::nanf("")),
          dx(x.size(), std::nanf(""));
      parallel_pack_matrix(test.context(), w.data(), c.n, c.k, packed.data());
      parallel_linear(test.context(), {.a = dy.data(),
                                       .lda = c.n,
                                       .packed = packed.data(),
                                       .c = dx.data(),
                                       .ldc = c.k,
                                       .m = c.m,
                                       .n = c.k,
                                       .k = c.n,
                                       .norm = {},
                                       .epilogue = {}});
      if (threads == 1) one = dx;
      EXPECT_TRUE(same_bits(one, dx)) << threads;
    }
    for (int64_t m = 0; m < c.m; ++m) {
      for (int64_t k = 0; k < c.k; ++k) {
        double sum = 0, magnitude = 1;
        for (int64_t n = 0; n < c.n; ++n) {
          const double term =
              static_cast<double>(dy[static_cast<size_t>(m * c.n + n)]) * w[static_cast<size_t>(n * c.k + k)];
          sum += term, magnitude += std::abs(term);
        }
        ASSERT_NEAR(one[static_cast<size_t>(m * c.k + k)], sum, sum_tolerance(DType::kF32, c.n, magnitude));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuWeightGrad, ::testing::ValuesIn(kWeightGradCases), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

// Patches gathered by a plain loop must give what the driver gathers for itself.
TEST(CpuPatchWeightGrad, AgreesWithGatheredPatches) {
  const PatchEmbedArgs shape{
      .batch = 3, .channels = 2, .height = 12, .width = 20, .patch_h = 3, .patch_w = 4, .n = 21};
  const int64_t across = 5, patches = 20, k = 24, m = 60;
  const Floats image = random_floats(3 * 2 * 12 * 20, 1), dy = random_floats(m * 21, 2);
  Floats rows;
  for (int64_t at = 0; at < m; ++at)
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t y = 0; y < 3; ++y)
        for (int64_t x = 0; x < 4; ++x) {
          const int64_t row = at % patches / across * 3 + y, column = at % across * 4 + x;
          rows.push_back(image[static_cast<size_t>(((at / patches * 2 + c) * 12 + row) * 20 + column)]);
        }
  const WeightGradCase c{m, 21, k};
  const Floats before = random_floats(21 * k, 3);
  for (const bool add : {false, true}) {
    const Expected want = plain_dw(c, rows, dy, add ? &before : nullptr);
    for_every_level([&](const IsaKernels& isa) {
      for (int threads : {1, 3}) {
        TestContext test(threads, isa, patch_weight_grad_scratch(isa, shape, add));
        Floats dw = before;
        PatchEmbedArgs args = shape;
        args.image = image.data();
        parallel_patch_weight_grad(test.context(), args, dy.data(), dw.data(), add);
        expect_close(dw, want, isa.name);
      }
    });
  }
}

}  // namespace
}  // namespace vitrail
