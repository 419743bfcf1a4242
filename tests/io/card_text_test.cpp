// A model's card as people and scripts read it.
#include "io/cards/card_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vitrail {
namespace {

TEST(ModelCard, DifferencesNameTheField) {
  ModelCard a, b;
  EXPECT_TRUE(card_differences(a, b).empty());
  b.config.norm_eps = 1e-12;
  b.preprocess.interpolation = Interpolation::kBilinear;
  b.labels = {"cat"};
  const auto found = card_differences(a, b);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].find("norm_eps: "), 0u);
  EXPECT_EQ(found[1], "interpolation: \"bicubic\" and \"bilinear\"");
  EXPECT_EQ(found[2], "labels: 0 and 1");
}

TEST(ModelCard, TextSaysWhatMatters) {
  ModelCard card;
  card.config.arch = "vit_base_patch16_224";
  card.notes = {"first", "second"};
  const std::string text = card_text(card, 0);
  for (const char* part :
       {"vit_base_patch16_224", "86,567,656", "197 tokens", "1e-06", "shorter side to 248", "first"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(card_json(card)["config"]["depth"], 12);
  EXPECT_EQ(card_json(card)["preprocess"]["mode"], "shorter_side");
}

}  // namespace
}  // namespace vitrail
