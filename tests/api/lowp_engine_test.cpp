// Models whose GEMMs compute in bf16 or int8: every level against the reference node by node, the same bits
// for any number of threads, smaller weights, and outputs near those of f32.
#include <gtest/gtest.h>

#include <cmath>

#include "api/engine.h"
#include "backend/cpu/host/levels.h"
#include "golden_cases.h"

namespace vitrail {
namespace {

// Widths that leave tails in every panel and vector; a layer scale, so that every prologue and epilogue op
// occurs.
VitConfig odd() {
  VitConfig c;
  c.image_height = 32;
  c.image_width = 40;
  c.patch = 8;
  c.width = 45;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 101;
  c.classes = 7;
  c.layer_scale = true;
  return c;
}

constexpr Arithmetic kLowPrecision[] = {Arithmetic::kBF16, Arithmetic::kInt8};

TEST(LowpEngine, EveryNodeOfEveryLevelAgreesWithTheReference) {
  const std::vector<float> images = golden::images(odd(), 2);
  for (IsaLevel level : available_isa_levels())
    for (Arithmetic arithmetic : kLowPrecision)
      for (bool fused : {true, false}) {
        Engine engine(odd(), {.threads = 2,
                              .isa = to_string(level),
                              .batch = 2,
                              .arithmetic = arithmetic,
                              .fuse = fused,
                              .check_reference = true});
        int own = 0;
        for (const NodeChoice& choice : engine.plan().choices)
          if (!choice.by_members)
            own +=
                std::string(choice.launches[0].kernel->name) == std::string(enum_name(arithmetic)) + " gemm";
        EXPECT_EQ(own, 8) << to_string(level);
        EXPECT_NO_THROW(engine.run(images, 2)) << to_string(level) << " " << enum_name(arithmetic);
      }
}

TEST(LowpEngine, TheNumberOfThreadsChangesNoBit) {
  const std::vector<float> images = golden::images(odd(), 3);
  for (Arithmetic arithmetic : kLowPrecision) {
    Engine one(odd(), {.threads = 1, .batch = 3, .arithmetic = arithmetic});
    one.run(images, 3);
    for (int threads : {2, 3, 8, 16}) {
      Engine many(odd(), {.threads = threads, .batch = 3, .arithmetic = arithmetic});
      many.run(images, 3);
      EXPECT_EQ(many.output("logits"), one.output("logits")) << threads;
    }
  }
}

TEST(LowpEngine, WeightsShrinkAndAnswersStayNear) {
  const std::vector<float> image = golden::images(odd(), 1);
  Engine exact(odd(), {});
  exact.run(image, 1);
  const std::vector<float> want = exact.output("logits");
  float largest = 0;
  for (float logit : want) largest = std::max(largest, std::abs(logit));
  size_t before = exact.plan().memory.persistent_bytes;
  for (Arithmetic arithmetic : kLowPrecision) {
    Engine engine(odd(), {.arithmetic = arithmetic});
    EXPECT_LT(engine.plan().memory.persistent_bytes, before);
    before = engine.plan().memory.persistent_bytes;
    engine.run(image, 1);
    const std::vector<float> got = engine.output("logits");
    EXPECT_NE(got, want);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 0.05f * largest) << enum_name(arithmetic);
  }
}

}  // namespace
}  // namespace vitrail
