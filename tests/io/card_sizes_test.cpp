// Sides of images: what follows of a crop at another size, and of the files that a library published.
#include "io/dialect_files.h"
#include "models/zoo.h"

namespace vitrail {
namespace {

TEST(ResizeSides, TheLongerOneFollowsInProportion) {
  const ResizeSides wide = resize_sides({.height = 32, .width = 48, .resize = 40});
  EXPECT_EQ(wide.height, 40);
  EXPECT_EQ(wide.width, 60);
  const ResizeSides tall = resize_sides({.height = 48, .width = 32, .resize = 40});
  EXPECT_EQ(tall.height, 60);
  EXPECT_EQ(tall.width, 40);
}

TEST(CardSizes, AnotherCropSeesTheSameShareOfTheImage) {
  const PreprocessConfig vit = find_architecture("vit_base_patch16_224").preprocess;
  const PreprocessConfig deit = find_architecture("deit_base_patch16_224").preprocess;
  const PreprocessConfig squash = find_architecture("vit_medium_patch16_gap_384").preprocess;
  PreprocessConfig published = vit;  // as a Hugging Face DeiT says it, without a crop_pct
  published.crop_pct = 0;
  published.resize = 256;
  PreprocessConfig sides = published;
  sides.mode = ResizeMode::kStretchCrop;
  sides.resize_longer = 280;
  PreprocessConfig oblong = sides;
  oblong.width = 448;
  oblong.resize_longer = 512;
  PreprocessConfig stretch = published;
  stretch.mode = ResizeMode::kStretch;
  stretch.resize = 0;
  const struct {
    const PreprocessConfig& from;
    int64_t height, width, resize, resize_longer;
  } rows[] = {
      {vit, 384, 384, 426, 0},       {vit, 224, 224, 248, 0},     {vit, 384, 224, 248, 426},
      {deit, 256, 256, 284, 0},      {squash, 224, 224, 235, 0},  {published, 256, 256, 292, 0},
      {published, 384, 384, 438, 0}, {sides, 448, 448, 512, 560}, {stretch, 384, 384, 0, 0},
      {oblong, 112, 224, 128, 256},
  };
  for (const auto& row : rows) {
    const PreprocessConfig p = at_size(row.from, row.height, row.width);
    EXPECT_EQ(p.resize, row.resize) << row.height;
    EXPECT_EQ(p.resize_longer, row.resize_longer) << row.height;
    EXPECT_EQ(p.height, row.height);
    EXPECT_EQ(p.width, row.width);
    EXPECT_EQ(p.mode, row.from.mode);
  }
}

TEST(CardHabits, TorchvisionsPublishedWeights) {
  const struct {
    int64_t width, patch, image;
    const char* file;
    int64_t resize;
    Interpolation interpolation;
  } rows[] = {
      {768, 16, 224, "vit_b_16-c867db91.pth", 256, Interpolation::kBilinear},
      {768, 32, 224, "vit_b_32-d86f8d99.pth", 256, Interpolation::kBilinear},
      {1024, 16, 224, "vit_l_16-852ce7e3.pth", 242, Interpolation::kBilinear},
      {1024, 32, 224, "vit_l_32-c7638314.pth", 256, Interpolation::kBilinear},
      {768, 16, 384, "vit_b_16_swag-9ac1b537.pth", 384, Interpolation::kBicubic},
      {1024, 16, 512, "vit_l_16_swag-4f3808c9.pth", 512, Interpolation::kBicubic},
      {1280, 14, 518, "vit_h_14_swag-80465313.pth", 518, Interpolation::kBicubic},
      {768, 16, 224, "vit_b_16_lc_swag-4e70ced5.pth", 224, Interpolation::kBicubic},
      {1024, 16, 224, "vit_l_16_lc_swag-4d563306.pth", 224, Interpolation::kBicubic},
      {1280, 14, 224, "vit_h_14_lc_swag-c1eb923e.pth", 224, Interpolation::kBicubic},
  };
  for (const auto& row : rows) {
    VitConfig c;
    c.width = row.width, c.patch = row.patch, c.image_height = c.image_width = row.image;
    const auto habit = dialect_preprocess(Dialect::kTorchvision, c, {.file_name = row.file});
    ASSERT_TRUE(habit);
    EXPECT_EQ(habit->preprocess.resize, row.resize) << row.file;
    EXPECT_EQ(habit->preprocess.interpolation, row.interpolation) << row.file;
    EXPECT_EQ(habit->preprocess.mode, ResizeMode::kShorterSide);
    EXPECT_EQ(habit->preprocess.mean[0], 0.485);
  }
}

}  // namespace
}  // namespace vitrail
