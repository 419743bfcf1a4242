// Models on a GPU whose GEMMs compute in fp8 or tf32: every node against the reference, smaller weights,
// outputs near those of f32.
#include <cmath>

#include "api/engine.h"
#include "cuda_test.h"
#include "golden_cases.h"

namespace vitrail {
namespace {

class CudaRoundedEngine : public CudaTest {};

VitConfig even() {
  VitConfig c;
  c.image_height = c.image_width = 64;
  c.patch = 8;
  c.width = 96;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 192;
  c.classes = 7;
  c.layer_scale = true;
  return c;
}

EngineOptions options_for(Arithmetic arithmetic) {
  return {.backend = "cuda",
          .batch = 3,
          .compute = arithmetic == Arithmetic::kFp8 ? DType::kBF16 : DType::kF32,
          .arithmetic = arithmetic,
          .rounds_few_rows = true};
}

std::vector<Arithmetic> kinds_here() {
  std::vector<Arithmetic> kinds = {Arithmetic::kTF32};
  if (cuda_device().compute == 90) kinds.push_back(Arithmetic::kFp8);
  return kinds;
}

TEST_F(CudaRoundedEngine, EveryNodeAgreesWithTheReference) {
  VitConfig plain = even();
  plain.layer_scale = false;
  for (const VitConfig& config : {even(), plain})
    for (Arithmetic arithmetic : kinds_here())
      for (bool fused : {true, false}) {
        EngineOptions options = options_for(arithmetic);
        options.fuse = fused, options.check_reference = true;
        Engine engine(config, options);
        EXPECT_NO_THROW(engine.run(golden::images(config, 3), 3)) << enum_name(arithmetic) << fused;
      }
}

TEST_F(CudaRoundedEngine, AnswersAreNearThoseOfF32AndRepeat) {
  const std::vector<float> images = golden::images(even(), 3);
  Engine exact(even(), options_for(Arithmetic::kExact));
  exact.run(images, 3);
  const std::vector<float> wanted = exact.output("logits");
  for (Arithmetic arithmetic : kinds_here()) {
    Engine engine(even(), options_for(arithmetic));
    engine.run(images, 3);
    const std::vector<float> found = engine.output("logits");
    double off = 0, all = 0;
    for (size_t i = 0; i < found.size(); ++i)
      off += std::pow(found[i] - wanted[i], 2), all += std::pow(wanted[i], 2);
    EXPECT_GT(off, 0);
    EXPECT_LT(std::sqrt(off / all), arithmetic == Arithmetic::kFp8 ? 0.1 : 0.002) << enum_name(arithmetic);
    engine.run(images, 3);
    EXPECT_EQ(engine.output("logits"), found) << "replayed";
  }
}

TEST_F(CudaRoundedEngine, WeightsOfFp8TakeAByte) {
  if (const std::string problem = hopper_problem(); !problem.empty()) GTEST_SKIP() << problem;
  EngineOptions half = options_for(Arithmetic::kFp8);
  half.arithmetic = Arithmetic::kExact;
  const Engine rounded(even(), options_for(Arithmetic::kFp8)), plain(even(), half);
  EXPECT_LT(static_cast<double>(rounded.plan().memory.persistent_bytes),
            0.7 * static_cast<double>(plain.plan().memory.persistent_bytes));
}

}  // namespace
}  // namespace vitrail
