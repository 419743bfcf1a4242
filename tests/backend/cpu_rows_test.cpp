// Row-wise kernels and the vector mathematics against double, at every level of the host.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backend/cpu/elementwise/elementwise.h"
#include "backend/cpu/norm/norm.h"
#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

TEST(CpuMath, GeluStaysWithinItsBound) {
  const Floats x = arguments(200);
  for_every_level([&](const IsaKernels& isa) {
    Floats erf(x.size()), tanh(x.size());
    isa.activate(Activation::kGeluErf, x.data(), static_cast<int64_t>(x.size()), erf.data());
    isa.activate(Activation::kGeluTanh, x.data(), static_cast<int64_t>(x.size()), tanh.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], bound = 2e-7 * std::max(1.0, std::abs(v));
      ASSERT_NEAR(erf[i], 0.5 * v * std::erfc(-v / std::sqrt(2.0)), bound) << "erf form at " << v;
      const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      ASSERT_NEAR(tanh[i], v / (1 + std::exp(-2 * u)), bound) << "tanh form at " << v;
    }
  });
}

// A row of two scores, 0 and -x, gives exp(-x) as the ratio of its probabilities.
TEST(CpuMath, ExpInSoftmaxIsAccurateToTheLastPlaces) {
  for_every_level([&](const IsaKernels& isa) {
    for (float x = 0; x > -87; x -= 0.0137f) {
      const float row[2] = {0, x};
      float y[2];
      isa.softmax_rows(row, 1, 2, y);
      ASSERT_NEAR(static_cast<double>(y[1]) / y[0] / std::exp(static_cast<double>(x)), 1, 4e-7) << x;
    }
  });
}

TEST(CpuMath, NanStaysNan) {
  const float nan = std::nanf("77"), inf = INFINITY;
  const Floats x = {nan, -nan, inf, -inf, 1};
  for_every_level([&](const IsaKernels& isa) {
    for (Activation act : {Activation::kGeluErf, Activation::kGeluTanh}) {
      Floats y(5);
      isa.activate(act, x.data(), 5, y.data());
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
      EXPECT_EQ(y[2], inf);
    }
    Floats y(5);
    isa.softmax_rows(x.data(), 1, 5, y.data());
    for (float value : y) EXPECT_TRUE(std::isnan(value));
  });
}

struct CpuRows : ::testing::TestWithParam<std::pair<int64_t, int64_t>> {
  int64_t rows = GetParam().first, width = GetParam().second;
  Floats x = random_floats(rows * width, 1, 5), row = random_floats(width, 2),
         other = random_floats(rows * width, 3);
  size_t at(int64_t r, int64_t i) const { return static_cast<size_t>(r * width + i); }

  // The kernel at every level and for 1, 2, 3, 8 threads; all threads must agree, then `check` sees the
  // values.
  template <typename Kernel, typename Check>
  void run(const Kernel& kernel, const Check& check) {
    for_every_level([&](const IsaKernels& isa) {
      Floats one;
      for (int threads : {1, 2, 3, 8}) {
        TestContext test(threads, isa, {});
        Floats y(x.size(), std::nanf(""));
        kernel(test.context(), y.data());
        if (threads == 1) one = y;
        EXPECT_TRUE(same_bits(one, y)) << threads << " threads";
      }
      check(one);
    });
  }
};

TEST_P(CpuRows, Layernorm) {
  for (float shift : {0.0f, 100.0f}) {
    for (float& v : x) v += shift;
    const auto kernel = [&](const CpuContext& context, float* y) {
      parallel_layernorm(context, {x.data(), width, y, width, rows, width, row.data(), other.data(), 1e-6f});
    };
    run(kernel, [&](const Floats& y) {
      for (int64_t r = 0; r < rows; ++r) {
        double mean = 0, var = 0;
        for (int64_t i = 0; i < width; ++i) mean += x[at(r, i)] / static_cast<double>(width);
        for (int64_t i = 0; i < width; ++i)
          var += std::pow(x[at(r, i)] - mean, 2) / static_cast<double>(width);
        const double rstd = 1 / std::sqrt(var + 1e-6);
        for (int64_t i = 0; i < width; ++i) {
          const double centred = x[at(r, i)] - mean, gain = row[static_cast<size_t>(i)];
          const double size = 1 + std::abs(gain) * rstd * (std::abs(mean) + std::abs(centred) + 1);
          ASSERT_NEAR(y[at(r, i)], centred * rstd * gain + other[static_cast<size_t>(i)],
                      sum_tolerance(DType::kF32, 1, size));
        }
      }
    });
  }
}

TEST_P(CpuRows, Softmax) {
  const auto kernel = [&](const CpuContext& context, float* y) {
    parallel_softmax(context, x.data(), rows, width, y);
  };
  run(kernel, [&](const Floats& y) {
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(x[at(r, i)]));
      for (int64_t i = 0; i < width; ++i) {
        const double want = std::exp(static_cast<double>(x[at(r, i)])) / sum;
        // a difference of scores, up to 10 here, is rounded before exp
        ASSERT_NEAR(y[at(r, i)], want, sum_tolerance(DType::kF32, 1, 11 * want));
      }
    }
  });
}

TEST_P(CpuRows, Elementwise) {
  using Kernel = std::function<void(const CpuContext&, float*)>;
  using Want = std::function<float(float x, float other, float row)>;
  const std::pair<Kernel, Want> kernels[] = {
      {[&](const CpuContext& context, float* y) {
         parallel_add(context, x.data(), other.data(), rows * width, y);
       },
       [](float a, float b, float) { return a + b; }},
      {[&](const CpuContext& context, float* y) {
         parallel_add_row(context, x.data(), row.data(), rows, width, y);
       },
       [](float a, float, float c) { return a + c; }},
      {[&](const CpuContext& context, float* y) {
         parallel_scale_row(context, x.data(), row.data(), rows, width, y);
       },
       [](float a, float, float c) { return a * c; }},
      {[&](const CpuContext& context, float* y) {
         parallel_activate(context, Activation::kNone, x.data(), rows * width, y);
       },
       [](float a, float, float) { return a; }}};
  for (const auto& [kernel, want] : kernels) {
    run(kernel, [&, &expect = want](const Floats& y) {
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], expect(x[i], other[i], row[i % static_cast<size_t>(width)]));
    });
  }
}

TEST_P(CpuRows, MeanOverTokens) {
  const auto kernel = [&](const CpuContext& context, float* y) {
    std::fill_n(y, rows * width, 0.0f);
    parallel_mean_tokens(context, x.data(), 1, rows * width, rows, width, y);
  };
  run(kernel, [&](const Floats& y) {
    for (int64_t i = 0; i < width; ++i) {
      double mean = 0;
      for (int64_t r = 0; r < rows; ++r) mean += x[at(r, i)] / static_cast<double>(rows);
      ASSERT_NEAR(y[at(0, i)], mean, sum_tolerance(DType::kF32, rows, 5));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuRows,
                         ::testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(5, 16),
                                           std::pair(50, 17), std::pair(65, 64), std::pair(197, 192),
                                           std::pair(257, 385), std::pair(577, 768)));

// Every chain ends at the fixed point of x/2 + 1.
TEST(CpuIsa, SpinDoesTheWorkItCounts) {
  for_every_level([](const IsaKernels& isa) {
    const auto chains = isa.spin_flops / 2;
    EXPECT_EQ(isa.spin(100), 2.0f * static_cast<float>(chains));
  });
}

TEST(CpuIsa, LevelsAreOrderedAndNamed) {
  const std::vector<IsaLevel> levels = available_isa_levels();
  EXPECT_EQ(levels.front(), IsaLevel::kBaseline);
  EXPECT_EQ(levels.back(), best_isa());
  for (IsaLevel level : levels) EXPECT_STREQ(isa_kernels(level).name, to_string(level));
}

}  // namespace
}  // namespace vitrail
