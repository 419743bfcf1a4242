// Vitrail against timm, Hugging Face, torchvision and a google forward: same weights by rule, same images.
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/engine.h"
#include "backend/cpu/host/levels.h"
#include "cuda_test.h"
#include "golden_cases.h"

namespace vitrail {
namespace {

// The bound that the project promises against every library, in f32.
constexpr double kLogitTolerance = 1e-4;
// The bound of the reference backend in f64 against the libraries' f64; goldens carry ten digits.
constexpr double kReferenceTolerance = 1e-8;
// The same bound where positions are resized: the resized table is stored in f32.
constexpr double kResizedTolerance = 1e-6;
// Models that run in a second or two: ViT-Ti at 224 and up to 288. Base and large models are left to make
// test-long.
constexpr int64_t kMacsInPlainLoops = 2'500'000'000;
// The share of the logits' spread by which the first choice in 16 bits may fall short of the best.
constexpr double kCloseCall = 0.02;

std::vector<double> run(const golden::Case& c, EngineOptions options) {
  options.batch = c.batch;
  Engine engine(golden::RuleModel(c), options);
  engine.run(golden::images(c.config, c.batch), c.batch);
  return engine.output_f64(c.config.classes > 0 ? "logits" : "features");
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, ReferenceInDoubleAgreesWithTheLibrary) {
  const golden::Case c = golden::load(GetParam());
  const bool is_long = std::getenv("VITRAIL_TEST_LONG") != nullptr;
  if (count_macs(c.config) > kMacsInPlainLoops && !is_long)
    GTEST_SKIP() << "half a minute in plain loops: VITRAIL_TEST_LONG runs it";
  EXPECT_LT(golden::largest_difference(run(c, {.backend = "ref", .dtype = DType::kF64}), c.logits),
            c.json.contains("base") ? kResizedTolerance : kReferenceTolerance);
}

TEST_P(Golden, CpuAgreesWithTheLibraryAtEveryInstructionSet) {
  const golden::Case c = golden::load(GetParam());
  for (IsaLevel level : available_isa_levels()) {
    if (level == IsaLevel::kBaseline && count_macs(c.config) > 2'000'000'000) continue;
    const std::vector<double> found = run(c, {.isa = to_string(level)}), wanted = c.logits;
    EXPECT_LT(golden::largest_difference(found, wanted), kLogitTolerance) << to_string(level);
    const auto argmax = [&](const std::vector<double>& v) {
      return std::max_element(v.begin(), v.end()) - v.begin();
    };
    EXPECT_EQ(argmax(found), argmax(wanted)) << to_string(level);
  }
}

size_t argmax(std::span<const double> row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

class CudaGolden : public CudaTest, public testing::WithParamInterface<std::filesystem::path> {};

TEST_P(CudaGolden, FloatAgreesWithTheLibrary) {
  const golden::Case c = golden::load(GetParam());
  EXPECT_LT(golden::largest_difference(run(c, {.backend = "cuda"}), c.logits), kLogitTolerance);
}

// Rule weights make some first choices close calls: what is chosen must be the best but for bf16's rounding.
TEST_P(CudaGolden, LowPrecisionChoosesTheSame) {
  const golden::Case c = golden::load(GetParam());
  for (DType compute : {DType::kBF16, DType::kF16}) {
    const std::vector<double> found = run(c, {.backend = "cuda", .compute = compute});
    ASSERT_EQ(found.size(), c.logits.size());
    const size_t width = found.size() / static_cast<size_t>(c.batch);
    for (size_t at = 0; at < found.size(); at += width) {
      const auto wanted = std::span(c.logits).subspan(at, width);
      const auto [low, high] = std::minmax_element(wanted.begin(), wanted.end());
      const double chosen = wanted[argmax(std::span(found).subspan(at, width))];
      EXPECT_GE(chosen, *high - kCloseCall * (*high - *low)) << to_string(compute);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaGolden, testing::ValuesIn(golden::all_cases()),
                         [](const auto& test) { return test.param.stem().string(); });
INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(golden::all_cases()),
                         [](const auto& test) { return test.param.stem().string(); });

}  // namespace
}  // namespace vitrail
