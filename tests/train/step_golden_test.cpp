// A training step against torch: loss, every gradient and ten steps' weights, in double on the reference
// backend and in float on the CPU and on a GPU.
#include <gtest/gtest.h>

#include "case_run.h"
#include "cuda_test.h"

namespace vitrail {
namespace {

using golden::CaseRun;
using golden::StepCase;

double largest(const std::vector<double>& values) {
  double top = 0;
  for (double v : values) top = std::max(top, std::abs(v));
  return top;
}

double norm_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

struct KeyShift {
  double value = 0, difference = 0;  // the largest
};

// Removes the common shift of all keys from both.
KeyShift take_key_shift(const std::string& name, std::vector<double>& a, std::vector<double>& b) {
  const auto [first, last] = golden::key_shift(name, a.size());
  KeyShift shift;
  for (size_t i = first; i < last; ++i) {
    shift.value = std::max({shift.value, std::abs(a[i]), std::abs(b[i])});
    shift.difference = std::max(shift.difference, std::abs(a[i] - b[i]));
    a[i] = b[i] = 0;
  }
  return shift;
}

// Largest difference relative to the tensor's largest value.
double relative_error(const std::vector<double>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size() || wanted.empty()) return INFINITY;
  double top = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] - wanted[i]);
    if (!(error <= top)) top = std::isnan(error) ? INFINITY : error;
  }
  return top == 0 ? 0 : top / largest(wanted);
}

class StepGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(StepGolden, ReferenceInDoubleAgreesWithTorch) {
  const StepCase c = golden::load_step_case(GetParam(), DType::kF64);
  CaseRun run(c, ref_backend());
  const auto losses = c.numbers("losses"), norms = c.numbers("norms"), lrs = c.numbers("lrs");
  for (int64_t i = 0; i < c.steps; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_NEAR(run.gradients(i), losses[at], 1e-9 * losses[at]) << "step " << i;
    for (const TrainedParam& p : c.config.trained) {
      if (i > 0) break;
      std::vector<double> found = run.value(gradient_name(p.name)), wanted = c.tensor("grad/" + p.name);
      ASSERT_EQ(found.size(), wanted.size()) << p.name;
      EXPECT_LE(take_key_shift(p.name, found, wanted).value, 1e-14) << p.name;
      EXPECT_LE(relative_error(found, wanted), 1e-9) << p.name;
    }
    const StepValues values = run.update(i);
    EXPECT_EQ(values.skip, 0);
    EXPECT_NEAR(values.grad_norm, norms[at], 1e-9 * norms[at]);
    EXPECT_NEAR(values.lr, lrs[at], 1e-15);
  }
  for (const TrainedParam& p : c.config.trained) {
    std::vector<double> found = run.value(p.name), wanted = c.tensor("weight/" + p.name);
    ASSERT_EQ(found.size(), wanted.size()) << p.name;
    // Lion moves by the sign even of a gradient that is zero but for rounding.
    const double drift = take_key_shift(p.name, found, wanted).difference;
    EXPECT_LE(drift, c.config.optim.name == "lion" ? 20 * c.config.optim.lr : 1e-9) << p.name;
    EXPECT_LE(relative_error(found, wanted), 1e-9) << p.name;
    if (c.config.optim.ema_decay > 0) {
      EXPECT_LE(relative_error(run.value(ema_name(p.name)), c.tensor("ema/" + p.name)), 1e-9) << p.name;
    }
  }
}

// How far f32 may differ from torch's f64. A first moment stored in bf16 may round the other way where the
// gradients differ in their last bit, by one part in 256 of an update: ten updates of lr against weights of a
// tenth.
struct FloatBounds {
  double gradients;  // of the norm of a parameter's gradient
  double weights;    // of the parameter's largest weight, after ten updates
};
FloatBounds cpu_bounds(const StepCase& c) {
  return {1e-5, c.config.optim.moment_dtype == MomentDType::kBF16 ? 3e-4 : 1e-5};
}
FloatBounds cuda_bounds(const StepCase& c) {
  return {1e-4, cpu_bounds(c).weights};
}

// Compares all weights after the last step, and their averages.
void expect_weights_agree(const StepCase& c, const CaseRun& run, double bound) {
  for (const TrainedParam& p : c.config.trained) {
    std::vector<double> found = run.value(p.name), wanted = c.tensor("weight/" + p.name);
    ASSERT_EQ(found.size(), wanted.size()) << p.name;
    take_key_shift(p.name, found, wanted);
    EXPECT_LE(relative_error(found, wanted), bound) << p.name;
    if (c.config.optim.ema_decay == 0) continue;
    std::vector<double> average = run.value(ema_name(p.name)), wanted_average = c.tensor("ema/" + p.name);
    take_key_shift(p.name, average, wanted_average);
    EXPECT_LE(relative_error(average, wanted_average), bound) << p.name;
  }
}

void expect_float_agrees(const StepCase& c, CaseRun& run, const FloatBounds& bounds) {
  const auto losses = c.numbers("losses"), losses_f32 = c.numbers("losses_f32");
  for (int64_t i = 0; i < c.steps; ++i) {
    const auto at = static_cast<size_t>(i);
    const double loss = run.gradients(i);
    EXPECT_NEAR(loss, losses_f32[at], 1e-5 * losses_f32[at]) << "step " << i;
    EXPECT_NEAR(loss, losses[at], 1e-5 * losses[at]) << "step " << i;
    for (const TrainedParam& p : c.config.trained) {
      if (i > 0) break;
      std::vector<double> found = run.value(gradient_name(p.name)), wanted = c.tensor("grad/" + p.name);
      ASSERT_EQ(found.size(), wanted.size()) << p.name;
      EXPECT_LE(take_key_shift(p.name, found, wanted).value, 1e-6) << p.name;
      const double scale = norm_of_difference(wanted, std::vector<double>(wanted.size(), 0.0));
      EXPECT_LE(norm_of_difference(found, wanted), bounds.gradients * scale) << p.name;
    }
    run.update(i);
  }
  expect_weights_agree(c, run, bounds.weights);
}

void expect_frozen_stay(const StepCase& c, CaseRun& run) {
  run.gradients(0);
  run.update(0);
  run.gradients(1);
  run.update(1);
  for (const ParamSpec& spec : vit_params(c.config.model)) {
    const bool trained = std::any_of(c.config.trained.begin(), c.config.trained.end(),
                                     [&](const TrainedParam& p) { return p.name == spec.name; });
    EXPECT_EQ(run.has(gradient_name(spec.name)), trained) << spec.name;
    std::vector<float> start(static_cast<size_t>(spec.shape.elems()));
    fill_by_rule(spec, start);
    const bool same = run.value(spec.name) == std::vector<double>(start.begin(), start.end());
    EXPECT_EQ(same, !trained) << spec.name;
    EXPECT_EQ(c.tensor("weight/" + spec.name).empty(), !trained) << spec.name;
  }
}

TEST_P(StepGolden, CpuInFloatAgreesWithTorch) {
  const StepCase c = golden::load_step_case(GetParam(), DType::kF32);
  CaseRun run(c, cpu_backend());
  expect_float_agrees(c, run, cpu_bounds(c));
}

TEST_P(StepGolden, FrozenParametersStayAndHaveNoGradient) {
  const StepCase c = golden::load_step_case(GetParam(), DType::kF32);
  CaseRun run(c, cpu_backend());
  expect_frozen_stay(c, run);
}

class CudaStepGolden : public CudaTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(CudaStepGolden, FloatAgreesWithTorchAndFrozenParametersStay) {
  const StepCase c = golden::load_step_case(GetParam(), DType::kF32);
  CaseRun run(c, cuda_backend(), cuda_device()), frozen(c, cuda_backend(), cuda_device());
  expect_float_agrees(c, run, cuda_bounds(c));
  expect_frozen_stay(c, frozen);
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaStepGolden, ::testing::ValuesIn(golden::step_cases()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Cases, StepGolden, ::testing::ValuesIn(golden::step_cases()),
                         [](const auto& test) { return test.param; });

TEST(StepGoldenCases, AreAllThere) {
  EXPECT_GE(golden::step_cases().size(), 14u);
}

}  // namespace
}  // namespace vitrail
