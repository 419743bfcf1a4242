// Image processors of transformers, each by the geometry and the colours of configs of its own, and where
// else a folder may say how images are prepared.
#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "io/library_forms.h"

namespace vitrail {
namespace {

StatedConfig stated_by(const char* processor, const char* settings) {
  const Json images =
      parse_json(strf(R"({"image_processor_type": "%sImageProcessor", %s})", processor, settings),
                 "preprocessor_config.json");
  return read_hf_config(Json{{"image_size", 32}, {"patch_size", 4}}, &images);
}

struct Row {
  const char *processor, *settings;
  ResizeMode mode;
  int64_t height, width, resize, longer;
  double mean;  // of the first channel
  int64_t pad_rows = 0, pad_columns = 0;
};
constexpr ResizeMode kStretch = ResizeMode::kStretch;
constexpr const char *kSides = R"("size": {"height": 24, "width": 40})",
                     *kCropped = R"("size": {"shortest_edge": 36}, "crop_size": {"height": 24, "width": 40})";
constexpr Row kTable[] = {
    {"Chameleon", kCropped, ResizeMode::kShorterSide, 24, 40, 36, 36, 1 / (255 * 0.0078)},
    {"MobileViT", kCropped, ResizeMode::kShorterSide, 24, 40, 36, 36, 0},
    {"PPChart2Table", kSides, kStretch, 24, 40, 0, 0, 0.48145466},
    {"ImageGPT", R"("size": 32, "do_color_quantize": false)", kStretch, 32, 32, 0, 0, 0.5},
    {"SuperPoint", kSides, kStretch, 24, 40, 0, 0, 0},
    {"Gemma3", kSides, kStretch, 24, 40, 0, 0, 0.5},
    {"GotOcr2", kSides, kStretch, 24, 40, 0, 0, 0.48145466},
    {"Ovis2", R"("size": 36, "do_center_crop": true, "crop_size": 32)", ResizeMode::kStretchCrop, 32, 32, 36,
     0, 0.48145466},
    {"SegGpt", kSides, kStretch, 24, 40, 0, 0, 0.485},
    {"Segformer", R"("size": 32, "do_center_crop": true, "crop_size": 24)", kStretch, 32, 32, 0, 0, 0.485},
    {"LayoutLMv2", kSides, kStretch, 24, 40, 0, 0, 0},
    {"Detr", R"("size": [24, 40], "do_center_crop": true)", kStretch, 24, 40, 0, 0, 0.485},
    {"Yolos", R"("size": [24, 40], "pad_size": [32, 41])", kStretch, 32, 41, 0, 0, 0.485, 8, 1},
    {"Yolos", R"("size": [24, 40], "pad_size": [32, 41], "do_pad": null)", kStretch, 24, 40, 0, 0, 0.485},
    {"RTDetr", kSides, kStretch, 24, 40, 0, 0, 0},
    {"RTDetr", R"("size": [24, 40], "do_normalize": true)", kStretch, 24, 40, 0, 0, 0.485},
    {"OneFormer", R"("size": [24, 40], "do_pad": true, "pad_size": 48)", kStretch, 24, 40, 0, 0, 0.485},
    {"MaskFormer", kSides, kStretch, 32, 64, 0, 0, 0.485},
    {"Mask2Former", R"("size": [24, 40], "size_divisor": 0, "pad_size": 40)", kStretch, 40, 40, 0, 0, 0.485,
     16},
    {"DPT", R"("size": 32, "ensure_multiple_of": 16, "do_pad": true)", kStretch, 32, 32, 0, 0, 0.5},
    {"Vilt", R"("size": 45, "size_divisor": 10)", kStretch, 40, 40, 0, 0, 0.5},
    {"BridgeTower", R"("size": {"shortest_edge": 36}, "crop_size": {"shortest_edge": 30}, "size_divisor": 4)",
     ResizeMode::kShorterDown, 30, 30, 36, 4, 0.48145466},
    {"BridgeTower", R"("size": 40, "do_center_crop": 0)", kStretch, 32, 32, 0, 0, 0.48145466},
    {"TextNet", R"("size": 36, "do_center_crop": true, "crop_size": [24, 40])", ResizeMode::kShorterUp, 24,
     40, 36, 32, 0.485},
    {"TextNet", R"("size": 36)", kStretch, 64, 64, 0, 0, 0.485},
    {"Perceiver", R"("size": [24, 40], "crop_size": [30, 48])", ResizeMode::kCropStretch, 24, 40, 30, 48,
     0.485},
    {"Perceiver", R"("size": [24, 40], "do_center_crop": false)", kStretch, 24, 40, 0, 0, 0.485},
    {"Janus", R"("size": 32)", ResizeMode::kSquare, 32, 32, 32, 14, 0.48145466},
    {"DeepseekOcr2", R"("size": 48, "crop_to_patches": false, "tile_size": 32)", ResizeMode::kSquare, 32, 32,
     32, 0, 0.5},
    {"Sam", R"("size": {"longest_edge": 27}, "pad_size": [32, 40])", ResizeMode::kCorner, 32, 40, 27, 0,
     0.485},
    {"Donut", R"("size": [24, 40])", ResizeMode::kThumbnail, 40, 24, 0, 0, 0.5},
    {"CLIP", R"("size": {"shortest_edge": 36, "longest_edge": 40}, "crop_size": 32)",
     ResizeMode::kShorterMost, 32, 32, 36, 40, 0.48145466},
    {"DeiT", R"("size": {"max_height": 36, "max_width": 40}, "crop_size": 32)", ResizeMode::kWithin, 32, 32,
     36, 40, 0.5},
    {"Levit", R"("size": {"shortest_edge": 28, "longest_edge": 29}, "crop_size": 32)",
     ResizeMode::kShorterSide, 32, 32, 32, 0, 0.485},
    {"ViT", R"("size": 36, "default_to_square": false, "do_center_crop": true, "crop_size": 32)",
     ResizeMode::kShorterSide, 32, 32, 36, 0, 0.5},
    {"CLIP", R"("size": 36, "default_to_square": true, "crop_size": 32)", ResizeMode::kStretchCrop, 32, 32,
     36, 0, 0.48145466},
    {"CLIP", R"("size": 36, "crop_size": 24, "do_pad": true, "pad_size": 32)", ResizeMode::kShorterSide, 32,
     32, 36, 0, 0.48145466, 8, 8},
    {"DeiT", R"("size": {"longest_edge": 9}, "do_resize": false, "crop_size": 32)", ResizeMode::kNone, 32, 32,
     0, 0, 0.5},
};

TEST(ProcessorKinds, GeometryAndColours) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(strf("%s %s", row.processor, row.settings));
    const PreprocessConfig p = *stated_by(row.processor, row.settings).preprocess;
    EXPECT_EQ(p.mode, row.mode) << enum_name(p.mode);
    EXPECT_EQ(p.height, row.height);
    EXPECT_EQ(p.width, row.width);
    EXPECT_EQ(p.resize, row.resize);
    EXPECT_EQ(p.resize_longer, row.longer);
    EXPECT_EQ(p.pad_rows, row.pad_rows);
    EXPECT_EQ(p.pad_columns, row.pad_columns == 0 ? row.width - crop_sides(p).width : row.pad_columns);
    EXPECT_NEAR(p.mean[0], row.mean, 1e-9);
  }
}

TEST(ProcessorKinds, SomeTakePixelsAsTheyAre) {
  EXPECT_NEAR(stated_by("LayoutLMv2", R"("size": 32, "do_rescale": true)").preprocess->std[2], 1.0 / 255,
              1e-12);
  EXPECT_EQ(stated_by("SuperPoint", R"("size": [32, 32], "do_normalize": true)").preprocess->std[2], 1);
}

TEST(ProcessorKinds, SomeTakeBlueFirst) {
  const auto swaps = [](const char* processor, const char* settings) {
    return stated_by(processor, settings).swaps_channels;
  };
  EXPECT_TRUE(swaps("MobileViT", R"("size": 32)"));
  EXPECT_FALSE(swaps("MobileViT", R"("size": 32, "do_flip_channel_order": null)"));
  EXPECT_TRUE(swaps("LayoutLMv2", R"("size": 32, "do_flip_channel_order": false)"));
  EXPECT_FALSE(swaps("CLIP", R"("size": 32, "do_flip_channel_order": true)"));
}

TEST(ProcessorKinds, AConfigMayNameTheProcessor) {
  const Json images = {{"size", 32}};
  const auto mode = [&](const Json& own) {
    return read_hf_config(Json{{"image_size", 32}, {"image_processor_type", "CLIPImageProcessor"}}, &own)
        .preprocess->mode;
  };
  EXPECT_EQ(mode({{"size", 32}}), ResizeMode::kShorterSide);
  EXPECT_EQ(mode({{"size", 32}, {"image_processor_type", "ViTImageProcessor"}}), kStretch);
}

class ProcessorFolders : public LibraryForms {
 protected:
  void SetUp() override {
    LibraryForms::SetUp();
    write_folder(tiny(), Dialect::kHf);
  }
  void write_images(const char* file, const Json& images) { write_file(at("m/") + file, images.dump()); }

  const int64_t side_ = tiny().config.image_height;
};

TEST_F(ProcessorFolders, PatchesOfBlueFirstAreReadTheOtherWayRound) {
  const auto patches = [&] {
    const auto model = open_model(at("m"));
    for (const ParamSpec& spec : vit_params(model->card().config))
      if (spec.name == "patch_embed.proj.weight") {
        std::vector<float> values(static_cast<size_t>(spec.shape.elems()));
        model->read_param(spec, values);
        return values;
      }
    return std::vector<float>();
  };
  write_images("preprocessor_config.json", {{"size", side_}});
  const std::vector<float> rgb = patches();
  write_images("preprocessor_config.json",
               {{"size", side_}, {"crop_size", side_}, {"image_processor_type", "MobileViTImageProcessor"}});
  const std::vector<float> bgr = patches();
  const size_t plane = static_cast<size_t>(tiny().config.patch * tiny().config.patch);
  ASSERT_EQ(rgb.size() % (3 * plane), 0u);
  for (size_t i = 0; i < rgb.size(); ++i) {
    const size_t c = i / plane % 3;
    EXPECT_EQ(bgr[i], rgb[i + 2 * plane - 2 * c * plane]) << i;
  }
  EXPECT_NE(rgb, bgr);
}

TEST_F(ProcessorFolders, WhatLiesWithinAProcessorOfSeveralInputsCountsFirst) {
  write_images("preprocessor_config.json", {{"size", side_}});
  write_images("processor_config.json", {{"processor_class", "CLIPProcessor"}});
  EXPECT_EQ(open_model(at("m"))->card().preprocess.mode, kStretch);
  write_images("processor_config.json",
               {{"image_processor", {{"size", 40}, {"do_center_crop", true}, {"crop_size", side_}}}});
  EXPECT_EQ(open_model(at("m"))->card().preprocess.mode, ResizeMode::kStretchCrop);
  EXPECT_EQ(open_model(at("m"))->card().preprocess.resize, 40);
}

TEST_F(ProcessorFolders, ASizeThatDoesNotFitNamesTheProcessor) {
  write_images("preprocessor_config.json",
               {{"size", side_ + 8}, {"image_processor_type", "SegGptImageProcessor"}});
  EXPECT_SAYS(refusal(at("m")), "SegGptImageProcessor");
}

}  // namespace
}  // namespace vitrail
