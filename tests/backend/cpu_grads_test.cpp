// Gradients of row-wise ops, and sums over rows, against plain loops in double.
#include <gtest/gtest.h>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/reduce/reduce.h"
#include "backend/cpu_test_util.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

TEST(CpuMathGrad, GeluSlopesStayWithinTheirBound) {
  const Floats x = arguments(200), ones(x.size(), 1.0f);
  for_every_level([&](const IsaKernels& isa) {
    Floats erf(x.size()), tanh(x.size());
    const auto count = static_cast<int64_t>(x.size());
    isa.activate_grad(Activation::kGeluErf, x.data(), ones.data(), count, erf.data());
    isa.activate_grad(Activation::kGeluTanh, x.data(), ones.data(), count, tanh.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      const double phi = std::exp(-0.5 * v * v) / std::sqrt(2 * M_PI);
      ASSERT_NEAR(erf[i], 0.5 * std::erfc(-v / std::sqrt(2.0)) + v * phi, 3e-7) << "erf form at " << v;
      const double root = std::sqrt(2 / M_PI), t = std::tanh(root * (v + 0.044715 * v * v * v));
      const double slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * root * (1 + 3 * 0.044715 * v * v);
      ASSERT_NEAR(tanh[i], slope, 6e-7) << "tanh form at " << v;
    }
  });
}

TEST(CpuMathGrad, InfinitiesHaveASlopeAndNanStaysNan) {
  const Floats x = {INFINITY, -INFINITY, std::nanf("")}, dy = {3, 3, 3};
  for_every_level([&](const IsaKernels& isa) {
    for (Activation act : {Activation::kGeluErf, Activation::kGeluTanh}) {
      Floats dx(3);
      isa.activate_grad(act, x.data(), dy.data(), 3, dx.data());
      EXPECT_EQ(dx[0], 3);
      EXPECT_NEAR(dx[1], 0, 1e-12);
      EXPECT_TRUE(std::isnan(dx[2]));
    }
  });
}

struct CpuRowGrads : ::testing::TestWithParam<std::pair<int64_t, int64_t>> {
  int64_t rows = GetParam().first, width = GetParam().second;
  Floats x = random_floats(rows * width, 1, 3), dy = random_floats(rows * width, 2),
         gamma = random_floats(width, 3);
  double value(const Floats& v, int64_t r, int64_t i) const {
    return static_cast<double>(v[static_cast<size_t>(r * width + i)]);
  }

  // run(context) at every level and for several numbers of threads; all must agree, then `check` sees the
  // values.
  template <typename Run, typename Check>
  void on_all(ScratchNeed need, const Run& run, const Check& check) {
    for_every_level([&](const IsaKernels& isa) {
      Floats one;
      for (int threads : {1, 2, 3, 8}) {
        TestContext test(threads, isa, need);
        const Floats got = run(test.context());
        if (threads == 1) one = got;
        EXPECT_TRUE(same_bits(one, got)) << threads << " threads";
      }
      check(one);
    });
  }
};

TEST_P(CpuRowGrads, RowSums) {
  struct Form {
    bool gemm, add;
  };
  for (const Form form : {Form{false, false}, Form{true, false}, Form{false, true}}) {
    const auto run = [&](const CpuContext& context) {
      Floats out = form.add ? gamma : Floats(gamma.size(), std::nanf(""));
      parallel_row_sum(context,
                       {x.data(), form.gemm ? dy.data() : nullptr, width, rows, width, out.data(), form.add});
      return out;
    };
    on_all(row_sum_scratch(rows, width), run, [&](const Floats& out) {
      for (int64_t i = 0; i < width; ++i) {
        double sum = form.add ? value(gamma, 0, i) : 0, magnitude = 1;
        for (int64_t r = 0; r < rows; ++r) {
          const double term = value(x, r, i) * (form.gemm ? value(dy, r, i) : 1);
          sum += term, magnitude += std::abs(term);
        }
        ASSERT_NEAR(value(out, 0, i), sum, sum_tolerance(DType::kF32, rows, magnitude)) << i;
      }
    });
  }
}

// Computes dx, dgamma and dbeta of rows in f64.
struct NormGrad {
  std::vector<double> dx, dgamma, dbeta;

  NormGrad(const Floats& x, const Floats& dy, const Floats& gamma, double eps) {
    const size_t width = gamma.size();
    const auto count = static_cast<double>(width);
    dx.resize(x.size()), dgamma.resize(width), dbeta.resize(width);
    for (size_t row = 0; row < x.size(); row += width) {
      double mean = 0, var = 0, g = 0, gn = 0;
      for (size_t i = 0; i < width; ++i) mean += x[row + i] / count;
      for (size_t i = 0; i < width; ++i) var += std::pow(x[row + i] - mean, 2) / count;
      const double rstd = 1 / std::sqrt(var + eps);
      const auto normal = [&](size_t i) { return (x[row + i] - mean) * rstd; };
      for (size_t i = 0; i < width; ++i) {
        g += static_cast<double>(dy[row + i]) * gamma[i] / count;
        gn += static_cast<double>(dy[row + i]) * gamma[i] * normal(i) / count;
        dgamma[i] += static_cast<double>(dy[row + i]) * normal(i),
            dbeta[i] += static_cast<double>(dy[row + i]);
      }
      for (size_t i = 0; i < width; ++i)
        dx[row + i] = (static_cast<double>(dy[row + i]) * gamma[i] - g - normal(i) * gn) * rstd;
    }
  }
};

void expect_norm_grad(const float* dx, const float* dgamma, const float* dbeta, const NormGrad& want,
                      double eps) {
  // The standard deviation of a row of two or three values may be small, and a quotient by it large.
  const double loss = 20 / std::sqrt(eps);
  const auto rows = static_cast<int64_t>(want.dx.size() / want.dgamma.size());
  for (size_t i = 0; i < want.dx.size(); ++i)
    ASSERT_NEAR(dx[i], want.dx[i], sum_tolerance(DType::kF32, 1, loss)) << i;
  for (size_t i = 0; dgamma && i < want.dgamma.size(); ++i) {
    ASSERT_NEAR(dgamma[i], want.dgamma[i], sum_tolerance(DType::kF32, rows, static_cast<double>(rows)));
    ASSERT_NEAR(dbeta[i], want.dbeta[i], sum_tolerance(DType::kF32, rows, static_cast<double>(rows)));
  }
}

TEST_P(CpuRowGrads, Layernorm) {
  const float eps = 1e-2f;
  const NormGrad want(x, dy, gamma, static_cast<double>(eps));
  for (const bool parameters : {true, false}) {
    const auto run = [&](const CpuContext& context) {
      Floats out(x.size() + 2 * gamma.size(), std::nanf(""));
      float* dgamma = parameters ? out.data() + x.size() : nullptr;
      parallel_layernorm_grad(context, {x.data(), dy.data(), out.data(), width, rows, width, gamma.data(),
                                        eps, dgamma, parameters ? dgamma + width : nullptr});
      return out;
    };
    on_all(layernorm_grad_scratch(rows, width, parameters), run, [&](const Floats& out) {
      const float* dgamma = out.data() + x.size();
      expect_norm_grad(out.data(), parameters ? dgamma : nullptr, dgamma + width, want,
                       static_cast<double>(eps));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuRowGrads,
                         ::testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(5, 16),
                                           std::pair(50, 17), std::pair(129, 64), std::pair(300, 192),
                                           std::pair(257, 385), std::pair(64, 1030)));

// q and k are normalised head by head, v passes.
TEST(CpuQkNormGrad, IsTheGradientOfTwoLayernorms) {
  const int64_t tokens = 150, heads = 3, size = 24, part = heads * size;
  const float eps = 1e-2f;
  const Floats qkv = random_floats(tokens * 3 * part, 1, 3), dy = random_floats(tokens * 3 * part, 2);
  const Floats gammas[] = {random_floats(size, 3), random_floats(size, 4)};
  const auto gather = [&](const Floats& from, int64_t t) {
    Floats rows;
    for (int64_t token = 0; token < tokens; ++token)
      rows.insert(rows.end(), from.begin() + (3 * token + t) * part,
                  from.begin() + (3 * token + t + 1) * part);
    return rows;
  };
  for_every_level([&](const IsaKernels& isa) {
    Floats one;
    for (int threads : {1, 2, 3, 8}) {
      TestContext test(threads, isa, qk_norm_grad_scratch(tokens, size));
      Floats dqkv(qkv.size()), params(static_cast<size_t>(4 * size));
      float* p = params.data();
      parallel_qk_norm_grad(test.context(), {.qkv = qkv.data(),
                                             .dy = dy.data(),
                                             .gamma = {gammas[0].data(), gammas[1].data()},
                                             .dqkv = dqkv.data(),
                                             .parameters = {p, p + size, p + 2 * size, p + 3 * size},
                                             .tokens = tokens,
                                             .heads = heads,
                                             .head_size = size,
                                             .eps = eps});
      for (int64_t t = 0; t < 2; ++t) {
        const NormGrad want(gather(qkv, t), gather(dy, t), gammas[t], static_cast<double>(eps));
        expect_norm_grad(gather(dqkv, t).data(), p + 2 * t * size, p + (2 * t + 1) * size, want,
                         static_cast<double>(eps));
      }
      EXPECT_TRUE(same_bits(gather(dqkv, 2), gather(dy, 2)));
      dqkv.insert(dqkv.end(), params.begin(), params.end());
      if (threads == 1) one = dqkv;
      EXPECT_TRUE(same_bits(one, dqkv)) << threads;
    }
  });
}

}  // namespace
}  // namespace vitrail
