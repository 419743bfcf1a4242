// Engines that share parameters: other batch sizes and outputs over one set of weights give the same bits as
// engines of their own, and take no memory that was not planned.
#include <gtest/gtest.h>

#include "api/engine.h"
#include "golden_cases.h"
#include "tensor/buffer.h"

namespace vitrail {
namespace {

VitConfig tiny() {
  VitConfig c;
  c.image_height = c.image_width = 32;
  c.patch = 8;
  c.width = 64;
  c.depth = 2;
  c.heads = 2;
  c.mlp = 128;
  c.classes = 7;
  return c;
}

std::vector<float> answer(Engine& engine, std::span<const float> images, int64_t count,
                          const char* output = "logits") {
  engine.run(images.first(static_cast<size_t>(count) * engine.image_elems()), count);
  return engine.output(output);
}

TEST(EngineSharing, OtherBatchSizesGiveTheSameBits) {
  const std::vector<float> images = golden::images(tiny(), 16);
  for (const Arithmetic arithmetic : {Arithmetic::kExact, Arithmetic::kBF16, Arithmetic::kInt8})
    for (const char* backend : {"cpu", "ref"}) {
      const EngineOptions options{.backend = backend, .batch = 16, .arithmetic = arithmetic};
      Engine engine(tiny(), options);
      const std::vector<float> all = answer(engine, images, 16);
      for (const int64_t batch : {1, 4, 5}) {
        EngineOptions other = options;
        other.batch = batch;
        Engine shared = engine.sharing(other), own(tiny(), other);
        const std::vector<float> found = answer(shared, images, batch);
        EXPECT_EQ(found, answer(own, images, batch)) << backend << " batch " << batch;
        EXPECT_EQ(found, std::vector<float>(all.begin(), all.begin() + std::ssize(found)))
            << backend << " batch " << batch;
      }
      EXPECT_EQ(answer(engine, images, 16), all) << "the others' runs leave nothing behind";
    }
}

TEST(EngineSharing, OtherOutputsComeFromTheSameParameters) {
  const std::vector<float> images = golden::images(tiny(), 2);
  const EngineOptions options{.batch = 2};
  Engine engine(tiny(), options);
  for (const char* output : {"features", "probs", "blocks.1.attention"}) {
    EngineOptions other = options;
    other.features = other.probabilities = other.attention = true;
    Engine shared = engine.sharing(other), own(tiny(), other);
    const auto found = answer(shared, images, 2, output), wanted = answer(own, images, 2, output);
    EXPECT_LT(golden::largest_difference(found, wanted), 2e-6) << output;
    EXPECT_FALSE(found.empty());
  }
}

TEST(EngineSharing, ParametersAndArenasAreThereOnce) {
  const EngineOptions options{.batch = 16};
  Engine engine(tiny(), options);
  const size_t params = Buffer::allocated(Category::kParameters),
               arenas = Buffer::allocated(Category::kTransient);
  EngineOptions smaller = options;
  smaller.batch = 4;
  smaller.probabilities = true;
  const Engine shared = engine.sharing(smaller);
  EXPECT_EQ(Buffer::allocated(Category::kParameters), params);
  EXPECT_EQ(Buffer::allocated(Category::kTransient), arenas);
  const Engine same = engine.sharing(options);
  EXPECT_EQ(Buffer::allocated(Category::kTransient), arenas) << "what is just large enough is enough";
  EngineOptions larger = options;
  larger.batch = 64;
  const Engine grown = engine.sharing(larger);
  EXPECT_EQ(Buffer::allocated(Category::kParameters), params);
  EXPECT_EQ(Buffer::allocated(Category::kTransient), arenas + grown.plan().memory.transient_bytes);
}

TEST(EngineSharing, WhatComputesOtherwiseIsRefused) {
  const Engine engine(tiny(), {.batch = 2});
  EXPECT_THROW(engine.sharing({.batch = 2, .arithmetic = Arithmetic::kBF16}), Error);
  EXPECT_THROW(engine.sharing({.backend = "ref"}), Error);
}

}  // namespace
}  // namespace vitrail
