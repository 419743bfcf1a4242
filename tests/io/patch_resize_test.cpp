#include "io/weight_resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include "dialect_files.h"
#include "nlohmann/json.hpp"
#include "source_root.h"

namespace vitrail {
namespace {

using Values = std::vector<float>;

// The goldens' input.
Values kernels(size_t count, int64_t patch) {
  Values values(count * static_cast<size_t>(patch * patch));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * i * 37 % 64) - 32) / 16.0f;
  return values;
}

TEST(PatchResize, EqualsThePublishedResample) {
  std::ifstream file(VT_SOURCE_DIR "/tests/golden/patch_resize.json");
  const auto golden = nlohmann::json::parse(file);
  int compared = 0;
  for (const auto& example : golden["cases"]) {
    SCOPED_TRACE(example["from"].dump() + " to " + example["to"].dump());
    const int64_t from = example["from"], to = example["to"];
    const std::vector<double> expected = example["values"];
    Values target(expected.size());
    resample_patches(kernels(golden["kernels"], from), from, target, to);
    double largest = 0;
    for (double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(target[i], expected[i], 1e-6 * largest) << i;
    ++compared;
  }
  EXPECT_EQ(compared, 7);
}

// The purpose of the pseudo-inverse: the new kernel maps an enlarged patch to what the old one makes of the
// patch.
TEST(PatchResize, AnEnlargedPatchGetsTheSameAnswer) {
  for (const auto& [from, to] : {std::pair{4, 9}, {8, 16}, {14, 16}}) {
    const Values kernel = kernels(1, from), patch = kernels(2, from);  // the second one is the patch
    Values answering(static_cast<size_t>(to * to)), enlarged(answering.size());
    resample_patches(kernel, from, answering, to);
    resize_positions(PosResize::kTimm, std::span(patch).last(kernel.size()), {from, from}, enlarged, {to, to},
                     0, 1);
    const auto answer = [](std::span<const float> a, std::span<const float> b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    EXPECT_NEAR(answer(answering, enlarged), answer(kernel, std::span(patch).last(kernel.size())), 1e-4);
  }
}

class PatchSize : public DialectTest {};

TEST_F(PatchSize, OpensAtAnotherPatchAndSaysSo) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto stored = open_model(at("m")), opened = open_model(at("m"), {.patch = 4});
  EXPECT_EQ(opened->card().config.patch, 4);
  EXPECT_EQ(opened->card().config.image_height, 32);
  EXPECT_SAYS(opened->card().notes.back(),
              "patch 4 instead of the file's 8: its weights resampled by FlexiViT's rule, positions resized");
  const auto kernel = [](int64_t patch) {
    return ParamSpec{"patch_embed.proj.weight", {{'D', 24}, {'C', 3}, {'P', patch}, {'Q', patch}}};
  };
  Values expected(24 * 3 * 4 * 4);
  resample_patches(values(*stored, kernel(8)), 8, expected, 4);
  EXPECT_EQ(values(*opened, kernel(4)), expected);
  EXPECT_EQ(values(*opened, {"pos_embed", {{'N', 1 + 8 * 8}, {'D', 24}}}).size(), 65u * 24);
  EXPECT_EQ(values(*opened, {"norm.weight", {{'D', 24}}}), values(*stored, {"norm.weight", {{'D', 24}}}));
}

TEST_F(PatchSize, ImageAndPatchTogetherKeepTheGrid) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kGoogle}, by_rule);
  const auto opened = open_model(at("m"), {.arch = "", .image_height = 64, .image_width = 64, .patch = 16});
  const ParamSpec pos{"pos_embed", {{'N', 17}, {'D', 24}}};
  EXPECT_EQ(values(*opened, pos), values(*open_model(at("m")), pos));
  EXPECT_EQ(opened->card().notes.back(),
            "image 64 x 64 instead of the file's 32 x 32, patch 16 instead of the file's 8: its weights "
            "resampled by FlexiViT's rule");
}

// What counts is where the patches lie, not how many there are.
TEST_F(PatchSize, AsManyPatchesOfAnotherGridHaveOtherPositions) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  const auto opened = open_model(at("m"), {.arch = "", .image_height = 64, .image_width = 16});
  const ParamSpec pos{"pos_embed", {{'N', 17}, {'D', 24}}};
  const Values stored = values(*open_model(at("m")), pos);
  Values expected(stored.size());
  resize_positions(opened->card().config.pos_resize, stored, {4, 4}, expected, {8, 2}, 1, 24);
  ASSERT_NE(expected, stored);
  EXPECT_EQ(values(*opened, pos), expected);
}

TEST_F(PatchSize, RefusesAPatchThatDoesNotDivideTheImage) {
  write_model(at("m"), tiny(), {.dialect = Dialect::kTimm}, by_rule);
  EXPECT_SAYS(refusal(at("m"), {.patch = 5}), "does not divide");
  EXPECT_EQ(open_model(at("m"), {.patch = 8})->card().config.patch, 8);
}

}  // namespace
}  // namespace vitrail
