// Every parameter's gradient after one step of 197 and 577 tokens with heads of 64, against torch in double:
// in f32, and in coarser types no further off than torch when it rounds alike (tests/golden/README.md).
#include "gradient_case.h"

namespace vitrail::golden {
namespace {

class GradientGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(GradientGolden, CpuInFloat) {
  const StepCase c = load_gradient_case(GetParam(), kInFloat);
  CaseRun run(c, cpu_backend());
  expect_gradients(c, run, kFloat);
}

TEST_P(GradientGolden, CpuInBf16) {
  const StepCase c = load_gradient_case(GetParam(), kInBf16);
  CaseRun run(c, cpu_backend());
  expect_gradients(c, run, kHalf, &kFloat);
}

TEST_P(GradientGolden, CpuInBf16WithItsStream) {
  const StepCase c = load_gradient_case(GetParam(), kInBf16Stream);
  CaseRun run(c, cpu_backend());
  expect_gradients(c, run, kHalfStream, &kFloat);
}

// A processor has no GEMMs in these; the reference has.
TEST_P(GradientGolden, ReferenceInFp8) {
  const StepCase c = load_gradient_case(GetParam(), kInFp8);
  CaseRun run(c, ref_backend());
  expect_gradients(c, run, kFp8, &kHalf);
}

TEST_P(GradientGolden, ReferenceInTf32) {
  const StepCase c = load_gradient_case(GetParam(), kInTf32);
  CaseRun run(c, ref_backend());
  expect_gradients(c, run, kTf32, &kFloat);
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientGolden, ::testing::ValuesIn(kGradientCases),
                         [](const auto& test) { return test.param; });

TEST(GradientsOfManyRows, CpuInBf16) {
  const StepCase c = load_gradient_case("tokens_197", kInBf16, kManyImages),
                 in_float = load_gradient_case("tokens_197", kInFloat, kManyImages);
  CaseRun run(c, cpu_backend()), exact(in_float, cpu_backend());
  expect_near_run(c, run, exact, kHalf);
}

}  // namespace
}  // namespace vitrail::golden
