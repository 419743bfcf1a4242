// What transformers' image processors do beside resizing, cropping and normalising as their configs say.
#include <gtest/gtest.h>

#include "io/cards/stated_config.h"
#include "io/config_json.h"
#include "io/names_only.h"

namespace vitrail {
namespace {

PreprocessConfig images_of(const std::string& config, int64_t side = 32) {
  const Json images = parse_json(config, "preprocessor_config.json");
  return *read_hf_config(Json{{"image_size", side}, {"patch_size", 4}}, &images).preprocess;
}

TEST(ProcessorWays, AShortestEdgeIsNotAlwaysWhatImagesAreResizedTo) {
  const struct {
    const char* config;
    int64_t resize, crop;
  } rows[] = {
      {R"({"image_processor_type": "LevitImageProcessor", "size": {"shortest_edge": 32}, "crop_size": 32})",
       36, 32},
      {R"({"image_processor_type": "PoolFormerImageProcessor", "size": {"shortest_edge": 32}, "crop_size": 32})",
       35, 32},
      {R"({"image_processor_type": "PoolFormerImageProcessor", "size": {"height": 32, "width": 32},
           "crop_pct": 0.5, "crop_size": 32})",
       64, 32},
      {R"({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}})", 36, 32},
      {R"({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}, "crop_pct": 0.8})",
       40, 32},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.config);
    const PreprocessConfig p = images_of(row.config);
    EXPECT_EQ(p.mode, ResizeMode::kShorterSide);
    EXPECT_EQ(p.resize, row.resize);
    EXPECT_EQ(p.height, row.crop);
    EXPECT_EQ(p.width, row.crop);
    EXPECT_EQ(p.mean[0], 0.485);
  }
  const PreprocessConfig wide =
      images_of(R"({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}})", 384);
  EXPECT_EQ(wide.mode, ResizeMode::kStretch) << "from 384 on nothing is cropped";
}

TEST(ProcessorWays, EfficientNetDividesByTheDeviationTwice) {
  const auto std_of = [](const char* more) {
    return images_of(std::string(R"({"image_processor_type": "EfficientNetImageProcessor", "size": 32,
                                     "image_mean": 0.5, "image_std": 0.2)") +
                     more + "}")
        .std;
  };
  EXPECT_NEAR(std_of("")[2], 0.04, 1e-12);
  EXPECT_NEAR(std_of(R"(, "include_top": true)")[0], 0.04, 1e-12);
  EXPECT_NEAR(std_of(R"(, "include_top": false)")[0], 0.2, 1e-12);
  EXPECT_NEAR(std_of(R"(, "do_normalize": false)")[0], 0.2, 1e-12);
}

TEST(ProcessorWays, WhatTheirConfigsDoNotTellIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"image_processor_type": "Own"})", "what \"Own\" does is not known"},
      {R"({"image_processor_type": "PerceiverImageProcessor"})",
       "what \"PerceiverImageProcessor\" does is not known"},
      {R"({"image_processor_type": "MobileViTImageProcessor", "do_flip_channel_order": false})",
       "what \"MobileViTImageProcessor\" does is not known"},
      {R"({"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": true})",
       "keep_aspect_ratio is true"},
      {R"({"image_processor_type": "DPTImageProcessor", "ensure_multiple_of": 14})",
       "ensure_multiple_of is 14"},
      {R"({"image_processor_type": "EfficientNetImageProcessor", "rescale_offset": true})",
       "rescale_offset is true"},
      {R"({"image_processor_type": "ViTImageProcessor", "do_pad": true})", "do_pad is true"},
  };
  for (const auto& [config, reason] : rows)
    EXPECT_NE(error_of([&, text = config] { images_of(text); }).find(reason), std::string::npos) << config;
}

TEST(ProcessorWays, OneNumberStandsForEveryChannel) {
  EXPECT_EQ(images_of(R"({"size": 32, "image_mean": 0.25, "image_std": 0.5})").mean, std::vector(3, 0.25));
  EXPECT_EQ(images_of(R"({"size": 32, "image_mean": 0.25, "image_std": 0.5})").std, std::vector(3, 0.5));
}

}  // namespace
}  // namespace vitrail
