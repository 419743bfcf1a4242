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
    EXPECT_EQ(p.mean[0],
              std::string_view(row.config).find("ConvNext") == std::string_view::npos ? 0.485 : 0.5);
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
  const auto mean_of = [](const char* more) {
    return images_of(strf(R"({"image_processor_type": "EfficientNetImageProcessor", "size": 32,
                              "rescale_offset": true%s})",
                          more))
        .mean[0];
  };
  EXPECT_EQ(mean_of(""), 1.5) << "1 is taken off the pixels";
  EXPECT_EQ(mean_of(R"(, "do_normalize": false)"), 1);
  EXPECT_NEAR(mean_of(R"(, "do_rescale": false)"), 0.5 / 255, 1e-12);
}

TEST(ProcessorWays, WhatTheirConfigsDoNotTellIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"image_processor_type": "Own"})", "what \"Own\" does is not known"},
      {R"({"image_processor_type": "GLPNImageProcessor"})", "what \"GLPNImageProcessor\" does is not known"},
      {R"({"image_processor_type": "DPTImageProcessor", "keep_aspect_ratio": true})",
       "keep_aspect_ratio is true"},
      {R"({"image_processor_type": "DPTImageProcessor", "size": 32, "ensure_multiple_of": 14})",
       "ensure_multiple_of is 14"},
      {R"({"image_processor_type": "DPTImageProcessor", "size": 32, "do_pad": true, "size_divisor": 14})",
       "size_divisor is 14"},
      {R"({"image_processor_type": "LlavaImageProcessor", "do_pad": true})", "do_pad is true"},
      {R"({"image_processor_type": "ImageGPTImageProcessor", "size": 32})",
       "do_color_quantize is left out, which is not understood and changes the result of "
       "ImageGPTImageProcessor"},
      {R"({"image_processor_type": "SuperPointImageProcessor", "size": 32})", "size is 32"},
      {R"({"image_processor_type": "SuperPointImageProcessor", "size": [32, 32], "do_grayscale": 1})",
       "do_grayscale is 1"},
      {R"({"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 32, "longest_edge": 32}})",
       "changes the result of DetrImageProcessor"},
      {R"({"image_processor_type": "DetrImageProcessor", "size": [32, 32], "pad_size": 24})",
       "pad_size is 24"},
      {R"({"size": 24, "do_pad": true, "pad_size": 32, "do_resize": false})", "pad_size is 32"},
      {R"({"image_processor_type": "BridgeTowerImageProcessor", "size": 32, "crop_size": 32})",
       "crop_size is 32"},
      {R"({"image_processor_type": "ViltImageProcessor", "size": 20})", "size is 20"},
      {R"({"image_processor_type": "PerceiverImageProcessor", "size": 32, "crop_size": 24})",
       "crop_size is 24"},
      {R"({"image_processor_type": "PerceiverImageProcessor", "do_resize": false})", "do_resize is false"},
      {R"({"image_processor_type": "SamImageProcessor", "size": {"longest_edge": 33}, "pad_size": 32})",
       "pad_size is 32"},
      {R"({"image_processor_type": "SamImageProcessor", "size": 32})", "size is 32"},
      {R"({"image_processor_type": "JanusImageProcessor", "size": 32, "min_size": 33})", "min_size is 33"},
      {R"({"image_processor_type": "JanusImageProcessor", "size": [32, 24]})", "size is [32,24]"},
      {R"({"image_processor_type": "JanusImageProcessor", "size": 32, "rescale_factor": 1})",
       "rescale_factor is 1"},
      {R"({"image_processor_type": "DeepseekVLImageProcessor", "size": 32, "do_normalize": null})",
       "do_normalize is null"},
      {R"({"image_processor_type": "DeepseekOcr2ImageProcessor", "size": 32, "image_mean": 0.4})",
       "background_color is left out"},
      {R"({"image_processor_type": "DonutImageProcessor", "size": 32, "do_align_long_axis": true})",
       "do_align_long_axis is true"},
      {R"({"image_processor_type": "DonutImageProcessor", "size": 32, "resample": 0})", "resample is 0"},
      {R"({"size": {"max_height": 32, "max_width": 32}})",
       "expected height and width, or shortest_edge alone"},
  };
  for (const auto& [config, reason] : rows)
    EXPECT_NE(error_of([&, text = config] { images_of(text); }).find(reason), std::string::npos) << config;
}

TEST(ProcessorWays, PoolFormersCropPctMayBeNullOrStretch) {
  const auto sides = [](const char* size, const char* pct) {
    const PreprocessConfig p = images_of(strf(
        R"({"image_processor_type": "PoolFormerImageProcessor", "crop_size": 32, "size": %s, "crop_pct": %s})",
        size, pct));
    return std::tuple(p.mode, p.resize, p.resize_longer);
  };
  constexpr const char *kEdge = R"({"shortest_edge": 40})", *kSides = R"({"height": 40, "width": 48})";
  EXPECT_EQ(sides(kEdge, "0.8"), std::tuple(ResizeMode::kShorterSide, 50, 0));
  EXPECT_EQ(sides(kEdge, "null"), std::tuple(ResizeMode::kShorterSide, 40, 0));
  EXPECT_EQ(sides(kSides, "0.8"), std::tuple(ResizeMode::kStretchCrop, 50, 60));
  EXPECT_EQ(sides(kSides, "null"), std::tuple(ResizeMode::kStretchCrop, 40, 48));
}

TEST(ProcessorWays, SiglipsNumberIsAShortestEdgeButItsDefaultIsNot) {
  const auto mode = [](const char* more) {
    return images_of(strf(R"({"image_processor_type": "SiglipImageProcessor"%s})", more), 224).mode;
  };
  EXPECT_EQ(mode(""), ResizeMode::kStretch);
  EXPECT_EQ(mode(R"(, "size": {"height": 224, "width": 224})"), ResizeMode::kStretch);
  EXPECT_EQ(mode(R"(, "size": 224, "do_center_crop": true, "crop_size": 224)"), ResizeMode::kShorterSide);
}

TEST(ProcessorWays, ProcessorsOfOtherFamiliesByTheirDefaults) {
  const std::tuple<const char*, ResizeMode, int64_t, double> rows[] = {
      {"Llava", ResizeMode::kShorterSide, 224, 0.48145466},
      {"Flava", ResizeMode::kStretch, 0, 0.48145466},
      {"OwlViT", ResizeMode::kStretch, 0, 0.48145466},
      {"LayoutLMv3", ResizeMode::kStretch, 0, 0.5}};
  for (const auto& [name, mode, resize, mean] : rows) {
    const PreprocessConfig p =
        images_of(strf(R"({"image_processor_type": "%sImageProcessor", "size": 224})", name), 224);
    EXPECT_EQ(p.mode, mode) << name;
    EXPECT_EQ(p.resize, resize) << name;
    EXPECT_EQ(p.mean[0], mean) << name;
    EXPECT_EQ(p.height, 224) << name;
  }
}

// In Python None is false; a key that is left out has the processor's default.
TEST(ProcessorWays, NullAndNumbersAreTruthValues) {
  const auto of = [](const char* key, const char* value) {
    return images_of(
        strf(R"({"image_processor_type": "DeiTImageProcessor", "size": 40, "crop_size": 32, "%s": %s})", key,
             value));
  };
  for (const char* off : {"null", "false", "0"}) {
    EXPECT_EQ(of("do_normalize", off).mean[0], 0) << off;
    EXPECT_NEAR(of("do_rescale", off).std[0], 0.5 / 255, 1e-9) << off;
    const PreprocessConfig as_it_is = of("do_resize", off);
    EXPECT_EQ(as_it_is.mode, ResizeMode::kNone) << off;
    EXPECT_EQ(as_it_is.resize, 0) << off;
    EXPECT_EQ(as_it_is.height, 32) << off;
  }
  EXPECT_EQ(of("do_normalize", "1").mean[0], 0.5);
  EXPECT_EQ(of("do_resize", "true").mode, ResizeMode::kStretchCrop);
  EXPECT_EQ(images_of(R"({"size": 32, "do_resize": false})").mode, ResizeMode::kStretch)
      << "nothing is cropped";
}

TEST(ProcessorWays, OneNumberStandsForEveryChannel) {
  EXPECT_EQ(images_of(R"({"size": 32, "image_mean": 0.25, "image_std": 0.5})").mean, std::vector(3, 0.25));
  EXPECT_EQ(images_of(R"({"size": 32, "image_mean": 0.25, "image_std": 0.5})").std, std::vector(3, 0.5));
}

}  // namespace
}  // namespace vitrail
