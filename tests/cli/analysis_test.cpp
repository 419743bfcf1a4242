#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "api/attention_maps.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/model_card.h"
#include "cli/overlay.h"
#include "cli/tiny_font.h"
#include "cli/top_classes.h"
#include "io/tensor_stats.h"
#include "measure/profile.h"

namespace vitrail::cli {
namespace {

template <typename T>
TensorStats scan(const std::vector<T>& values, DType dtype) {
  StatsScan whole(dtype);
  whole.add(std::as_bytes(std::span(values)));
  return whole.result();
}

TEST(TensorStats, CountsWhatIsNotFinite) {
  const TensorStats stats = scan<float>({1, -3, NAN, INFINITY, 5, -INFINITY}, DType::kF32);
  EXPECT_EQ(stats.finite, 3);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.inf, 2);
  EXPECT_DOUBLE_EQ(stats.min, -3);
  EXPECT_DOUBLE_EQ(stats.max, 5);
  EXPECT_DOUBLE_EQ(stats.mean, 1);
  const TensorStats falling = scan<float>({7, 2, -4}, DType::kF32);
  EXPECT_DOUBLE_EQ(falling.max, 7);
  EXPECT_DOUBLE_EQ(falling.min, -4);
}

TEST(TensorStats, EveryElementTypeAndLongTensors) {
  EXPECT_DOUBLE_EQ(scan<int64_t>({-7, 9}, DType::kI64).mean, 1);
  EXPECT_DOUBLE_EQ(scan<int32_t>({-7, 9}, DType::kI32).min, -7);
  EXPECT_DOUBLE_EQ(scan<int16_t>({-7, 9}, DType::kI16).max, 9);
  EXPECT_DOUBLE_EQ(scan<int8_t>({-128}, DType::kI8).min, -128);
  EXPECT_DOUBLE_EQ(scan<uint8_t>({255}, DType::kU8).max, 255);
  EXPECT_DOUBLE_EQ(scan<uint8_t>({0, 1}, DType::kBool).mean, 0.5);
  EXPECT_DOUBLE_EQ(scan<uint16_t>({0x3C00, 0xC000}, DType::kF16).min, -2);
  EXPECT_DOUBLE_EQ(scan<uint16_t>({0x3F80}, DType::kBF16).max, 1);
  std::vector<double> many(10001, 1.0);
  many.back() = 10002;
  EXPECT_DOUBLE_EQ(scan(many, DType::kF64).mean, 2);
  EXPECT_EQ(scan<float>({}, DType::kF32).finite, 0);
}

TEST(TopClasses, SortedWithLabels) {
  const auto top = top_classes(std::vector<float>{0.1f, 0.4f, 0.1f, 0.4f, NAN}, {"a", "b"}, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].label, "b");
  EXPECT_EQ(top[1].label, "class 3") << "equal ones by index";
  EXPECT_EQ(top[2].index, 0);
  EXPECT_EQ(top_classes(std::vector<float>{0.5f}, {}, 9).size(), 1u);
  EXPECT_EQ(top_classes_json(top)[0]["class"], 1);
  EXPECT_NE(top_classes_text(top, 2).find("40.00 %"), std::string::npos);
}

TEST(Shown, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(shown("été blocks.0"), "été blocks.0");
  EXPECT_EQ(shown("a\033[2J").find('\033'), std::string::npos);
  EXPECT_EQ(shown("\xff").find('\xff'), std::string::npos);
}

VitConfig small_config(bool class_token) {
  VitConfig config;
  config.image_height = 32, config.image_width = 48, config.patch = 16;
  config.heads = 2, config.width = 8, config.class_token = class_token;
  config.pool = class_token ? Pool::kCls : Pool::kMean;
  return config;
}

// Head h of every token looks only at token `target`.
std::vector<float> looking_at(const VitConfig& config, const std::vector<size_t>& targets) {
  const auto tokens = static_cast<size_t>(config.tokens());
  std::vector<float> weights(targets.size() * tokens * tokens, 0.0f);
  for (size_t h = 0; h < targets.size(); ++h)
    for (size_t n = 0; n < tokens; ++n) weights[(h * tokens + n) * tokens + targets[h]] = 1;
  return weights;
}

TEST(AttentionMaps, HeadsAndTheirMean) {
  for (const bool class_token : {true, false}) {
    const VitConfig config = small_config(class_token);
    const size_t first = class_token ? 1 : 0;
    const std::vector<float> weights = looking_at(config, {first + 2, first + 5});
    EXPECT_EQ(head_map(weights, config, 1), (PatchMap{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(mean_map(weights, config), (PatchMap{0, 0, 0.5, 0, 0, 0.5}));
  }
}

TEST(AttentionMaps, RolloutMultipliesLayersWithTheIdentity) {
  const VitConfig config = small_config(true);
  // Layer 1 sends every token to patch 0, layer 2 to patch 1: the class row is 1/4 itself, 1/4 patch 0
  // straight from layer 1, and of the half that reads patch 1, half stays there and half was patch 0 before.
  const PatchMap map = rollout_map({looking_at(config, {1, 1}), looking_at(config, {2, 2})}, config);
  EXPECT_EQ(map, (PatchMap{0.5, 0.25, 0, 0, 0, 0}));
}

TEST(AttentionMaps, StretchedAndEvenness) {
  EXPECT_EQ(stretched({2, 2, 2}), (PatchMap{0, 0, 0}));
  EXPECT_EQ(stretched({0, 1, 2}, 0, 1), (PatchMap{0, 0.5, 1}));
  EXPECT_NEAR(evenness({1, 1, 1, 1}), 1, 1e-12);
  EXPECT_NEAR(evenness({0, 1, 0, 0}), 0, 1e-12);
}

// Cells of eleven pixels: each one's middle shows its own heat alone.
TEST(Overlay, RowsAndColumnsOfTheMapLieAsInTheImage) {
  constexpr int64_t kRows = 2, kColumns = 4, kCell = 11;
  std::vector<float> map(kRows * kColumns, 0.0f);
  map[7] = 1;  // the last of the lower row
  const Image shown = heat_overlay(Image::blank(kRows * kCell, kColumns * kCell, 3), map, kRows, kColumns);
  const auto middle = [&](int64_t row, int64_t column) {
    const uint8_t* pixel = shown.row(row * kCell + kCell / 2) + 3 * (column * kCell + kCell / 2);
    return std::vector<int>{pixel[0], pixel[1], pixel[2]};
  };
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      const bool hot = row == 1 && column == 3;
      EXPECT_EQ(middle(row, column) == middle(0, 0), !hot) << row << " " << column;
    }
  EXPECT_GT(middle(1, 3)[0], middle(0, 0)[0]);
}

TEST(Overlay, HotPartsAreBrighterThanColdOnes) {
  Image picture = Image::blank(32, 48, 3);
  std::fill(picture.pixels.begin(), picture.pixels.end(), uint8_t{100});
  const std::vector<float> map = {0, 0, 0, 0, 0, 1};
  const Image out = heat_overlay(picture, map, 2, 3);
  EXPECT_GT(out.row(31)[3 * 47], out.row(0)[0] + 60);
  EXPECT_LT(out.row(0)[0], 100);
}

TEST(Overlay, HeatRisesInLightness) {
  double last = -1;
  for (int i = 0; i <= 20; ++i) {
    const Colour c = heat_colour(static_cast<float>(i) / 20);
    const double light = 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue;
    EXPECT_GT(light, last);
    last = light;
  }
  EXPECT_EQ(heat_colour(-5).red, heat_colour(0).red);
  EXPECT_EQ(heat_colour(5).red, heat_colour(1).red);
}

TEST(Overlay, SheetHoldsEveryTile) {
  const std::vector<Tile> tiles(5, Tile{"head 3", Image::blank(10, 20, 3)});
  const Image sheet = contact_sheet(tiles, 3);
  EXPECT_EQ(sheet.height, 2 * (36 + 18) + 8);
  EXPECT_EQ(sheet.width, 3 * 28 + 8);
  EXPECT_EQ(sheet.row(8 + 36)[3 * 8], 0);
  EXPECT_NE(sheet.row(0)[0], 0);
}

TEST(TinyFont, DrawsScaledAndClipped) {
  Image image = Image::blank(14, 12, 3);
  draw_tiny_text("l", 0, 0, 2, 200, image);
  // Its first row is .##.., two pixels a dot.
  for (int64_t x = 0; x < 12; ++x) EXPECT_EQ(image.row(1)[3 * x], x >= 2 && x < 6 ? 200 : 0) << x;
  Image edge = Image::blank(4, 4, 3);
  draw_tiny_text("m ?8w", -3, -2, 5, 200, edge);
  draw_tiny_text("0123456789 block head mean rollout", 2, 1, 1, 200, edge);
  EXPECT_NE(std::count(edge.pixels.begin(), edge.pixels.end(), 200), 0);
}

TEST(Profile, NodesBelongToPartsAndOperations) {
  const std::pair<const char*, const char*> parts[] = {
      {"patch_embed.bias", "embeddings"}, {"blocks.11.norm1", "layer norm 1"},
      {"blocks.0.attn.qkv", "attention"}, {"blocks.0.attn.residual", "residual 1"},
      {"blocks.3.mlp.fc2", "MLP"},        {"blocks.3.mlp.residual", "residual 2"},
      {"norm", "last layer norm"},        {"head", "pooling and head"}};
  for (const auto& [node, part] : parts) EXPECT_EQ(part_of(node), part) << node;
  EXPECT_EQ(operation_of("blocks.11.mlp.fc1"), "blocks.*.mlp.fc1");
  EXPECT_EQ(operation_of("fc1"), "fc1");
}

TEST(Profile, RowsKeepEveryFlopWhateverTheGrouping) {
  VitConfig config = small_config(true);
  config.mlp = 16, config.depth = 3, config.classes = 5;
  const ExecutionPlan plan = plan_inference(config, {.threads = 1});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (const ProfileBy by : {ProfileBy::kPart, ProfileBy::kOperation, ProfileBy::kNode}) {
    double flops = 0, seconds = 0;
    for (const ProfileRow& row : profile_rows(plan, times, by)) flops += row.flops, seconds += row.seconds;
    EXPECT_DOUBLE_EQ(flops, plan.program.cost().flops);
    EXPECT_NEAR(seconds, 0.1 * static_cast<double>(times.size()), 1e-9);
  }
  EXPECT_EQ(profile_rows(plan, times, ProfileBy::kNode).size(), times.size());
  EXPECT_NE(profile_table(profile_rows(plan, times, ProfileBy::kPart), {.gflops = 10}, ProfileColumns::kParts)
                .find("100.00 %"),
            std::string::npos);
}

TEST(Profile, PartsTellTheTimeInOneLayerAndWhyKernelsDeclined) {
  VitConfig config = small_config(true);
  config.mlp = 16, config.depth = 3, config.classes = 5;
  ExecutionPlan plan = plan_inference(config, {.threads = 1, .fuse = false});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (size_t i = 0; i < times.size(); ++i)  // the last block does less
    if (plan.program.nodes[i].name.starts_with("blocks.2.")) times[i].seconds = 0.1;
  for (NodeChoice& choice : plan.choices) choice.declined = {"fast: too small"};
  for (const ProfileRow& row : profile_rows(plan, times, ProfileBy::kPart)) {
    const bool in_blocks =
        row.name == "attention" || row.name == "MLP" || row.name.ends_with(" 1") || row.name.ends_with(" 2");
    EXPECT_EQ(row.layers(), in_blocks ? 3 : 0) << row.name;
    if (row.name == "layer norm 1") {
      EXPECT_DOUBLE_EQ(row.seconds_per_layer(), 0.1);
    }
    EXPECT_EQ(row.declined, std::vector<std::string>{"fast: too small"}) << row.name;
  }
  const std::vector<std::string> lines = declined_lines(plan);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "blocks.*.mlp.fc1: kernel fast declined: too small"), 1);
}

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
}  // namespace vitrail::cli
