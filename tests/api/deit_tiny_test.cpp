// The bundled DeiT-Tiny on real photographs, against timm and float64 forwards of the same weights.
#include <gtest/gtest.h>

#include <cmath>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "api/classify.h"
#include "api/engine.h"
#include "cuda_test.h"
#include "data/decode.h"
#include "data/preprocess.h"
#include "golden_cases.h"
#include "source_root.h"
#include "telemetry/confusion.h"
#include "vitrail/vitrail.h"

namespace vitrail {
namespace {

const std::string kDeitTiny = VT_SOURCE_DIR "/models/deit_tiny_patch16_224";
const std::string kDeitImages = VT_SOURCE_DIR "/examples/images/";
const std::string kGoldens = VT_SOURCE_DIR "/tests/golden/deit_tiny/";

std::vector<float> read_floats(const std::string& path) {
  const std::string bytes = read_file(path, 16 << 20);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

using golden::largest_difference;

std::vector<float> logits(const OpenedModel& model, const std::vector<float>& pixels,
                          const EngineOptions& options = {}) {
  Engine engine(model, options);
  engine.run(pixels, 1);
  return engine.output("logits");
}

TEST(DeitTiny, BundledCopyAgreesWithAFloat64ForwardOfThatCopy) {
  const auto found =
      logits(*open_model(kDeitTiny), read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32"));
  const Json golden = golden::read(kGoldens + "chelsea_f16_logits_f64.json");
  EXPECT_LT(largest_difference(found, golden["logits"].get<std::vector<double>>()), 5e-5);
}

TEST(DeitTiny, ImagesArePreparedAsTheReferenceDid) {
  const auto model = open_model(kDeitTiny);
  std::vector<float> pixels(3 * 224 * 224);
  preprocess(load_image(kDeitImages + "chelsea.png"), model->card().preprocess, pixels);
  EXPECT_LT(largest_difference(pixels, read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32")), 1e-6);
}

TEST(DeitTiny, NamesTheCatAndTheCoffee) {
  const Model model = Model::load(kDeitTiny);
  const auto cat = model.classify(kDeitImages + "chelsea.png", 2),
             coffee = model.classify(kDeitImages + "coffee.png", 1);
  EXPECT_EQ(cat[0].label, "Egyptian cat");
  EXPECT_NEAR(cat[0].probability, 0.35286, 0.002);
  EXPECT_EQ(cat[1].label, "tabby");
  EXPECT_NEAR(cat[1].probability, 0.25629, 0.002);
  EXPECT_EQ(coffee[0].label, "espresso");
  EXPECT_NEAR(coffee[0].probability, 0.84680, 0.002);
  EXPECT_EQ(model.embed(kDeitImages + "chelsea.png").size(), 192u);
}

TEST(DeitTiny, EveryNodeAgreesWithTheReference) {
  Engine engine(*open_model(kDeitTiny), {.check_reference = true});
  EXPECT_NO_THROW(engine.run(read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32"), 1));
}

class CudaDeitTiny : public CudaTest {};

TEST_F(CudaDeitTiny, AgreesWithAFloat64ForwardAndChoosesTheSameInSixteenBits) {
  const auto model = open_model(kDeitTiny);
  const auto pixels = read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32");
  const auto wanted =
      golden::read(kGoldens + "chelsea_f16_logits_f64.json")["logits"].get<std::vector<double>>();
  EXPECT_LT(largest_difference(logits(*model, pixels, {.backend = "cuda"}), wanted), 5e-5);
  for (DType compute : {DType::kBF16, DType::kF16}) {
    const auto found = logits(*model, pixels, {.backend = "cuda", .compute = compute});
    EXPECT_LT(largest_difference(found, wanted), compute == DType::kBF16 ? 0.2 : 0.02);
    EXPECT_EQ(std::max_element(found.begin(), found.end()) - found.begin(),
              std::max_element(wanted.begin(), wanted.end()) - wanted.begin());
  }
}

TEST_F(CudaDeitTiny, EveryNodeAgreesWithTheReference) {
  for (DType compute : {DType::kF32, DType::kBF16, DType::kF16}) {
    const size_t before = Buffer::allocated(Category::kParameters);
    Engine engine(*open_model(kDeitTiny), {.backend = "cuda", .compute = compute, .check_reference = true});
    EXPECT_EQ(Buffer::allocated(Category::kParameters) - before, engine.plan().memory.persistent_bytes)
        << "nothing is packed: the check reads the model's own parameters";
    EXPECT_NO_THROW(engine.run(read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32"), 1))
        << to_string(compute);
  }
}

// The 32-bit file is not in the repository: DEIT_TINY_F32 says where it is.
TEST(DeitTiny, FullPrecisionFileAgreesWithTimmOnPhotographs) {
  const char* file = std::getenv("DEIT_TINY_F32");
  if (!file) GTEST_SKIP() << "DEIT_TINY_F32 is not set";
  const auto model = open_model(file, {.arch = "deit_tiny_patch16_224"});
  EXPECT_LT(largest_difference(logits(*model, read_floats(kGoldens + "ref_chelsea_input_3x224x224.f32")),
                               read_floats(kGoldens + "ref_chelsea_logits_1000.f32")),
            5e-5);
  PreprocessConfig deit = model->card().preprocess;
  deit.resize = 256;
  for (const char* name : {"astronaut.png", "chelsea.png", "coffee.png", "raccoon.png", "rocket.jpg"}) {
    std::vector<float> pixels(3 * 224 * 224);
    preprocess(load_image(kDeitImages + name), deit, pixels);
    const std::string stem = std::filesystem::path(name).stem();
    EXPECT_LT(largest_difference(logits(*model, pixels), read_floats(kGoldens + stem + "_logits_f32.f32")),
              1e-4)
        << name;
  }
}

TEST(TopClasses, WhatIsNoNumberIsNoAnswer) {
  std::vector<float> scores = {-1e30f, 2.0f, -INFINITY, 2.0f};
  EXPECT_EQ(likeliest(scores, 9), (std::vector<int>{1, 3, 0, 2}));
  EXPECT_EQ(likeliest(scores, 2), (std::vector<int>{1, 3}));
  EXPECT_TRUE(likeliest(scores, -1).empty());
  for (float& score : scores) {
    const float was = std::exchange(score, NAN);
    EXPECT_TRUE(likeliest(scores, 9).empty());
    EXPECT_EQ(highest_class(scores), kNoClass);
    score = was;
  }
}

TEST(Sigmoids, AreEachTheirOwn) {
  EXPECT_EQ(sigmoids(std::vector<float>{-200.0f, 0.0f, 200.0f}), (std::vector<float>{0, 0.5f, 1}));
}

}  // namespace
}  // namespace vitrail
