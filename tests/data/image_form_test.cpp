// In which form images reach a step: the decision, its reasons, and what a loader then holds.
#include "data/image_form.h"

#include "data/augment/augment_config.h"
#include "data/loader_helpers.h"
#include "data/preprocess.h"

namespace vitrail {
namespace {

using test::FakeDataset;
using test::small_settings;

const ImageLimits kCpu{}, kGpu{.own_memory = true, .stored_bytes = 1 << 20};

struct FormCase {
  const char* name;
  std::function<void(LoaderSettings&)> change;
  ImageLimits limits;
  ImageForm form;
  const char* note;  // a part of it; empty: there is none
};

TEST(ImageForm, IsChosenInOnePlaceWithItsReason) {
  const auto on = [](OnDevice wanted) { return [=](LoaderSettings& s) { s.loader.on_device = wanted; }; };
  const FormCase cases[] = {
      {"auto on the CPU", [](LoaderSettings&) {}, kCpu, ImageForm::kFloats, ""},
      {"auto on a GPU", [](LoaderSettings&) {}, kGpu, ImageForm::kStored, "all 40 of them kept"},
      {"off on a GPU", on(OnDevice::kOff), kGpu, ImageForm::kFloats, ""},
      {"images", on(OnDevice::kImages), kCpu, ImageForm::kPixels, "from 8-bit pixels"},
      {"dataset, however large", on(OnDevice::kDataset), kCpu, ImageForm::kStored, "all 40 of them kept"},
      {"too large",
       [](LoaderSettings&) {},
       {.own_memory = true, .stored_bytes = 40 * 192 - 1},
       ImageForm::kPixels,
       "they take"},
      {"policy", [](LoaderSettings& s) { s.augment.policy = "rand-m9"; }, kGpu, ImageForm::kPixels,
       "the CPU varies each"},
      {"jitter", [](LoaderSettings& s) { s.augment.colour_jitter = {0.3}; }, kGpu, ImageForm::kPixels,
       "the CPU varies each"},
      {"resized crop", [](LoaderSettings& s) { s.augment.crop = CropKind::kResized; }, kGpu,
       ImageForm::kPixels, "the CPU varies each"},
      {"centre crop", [](LoaderSettings& s) { s.preprocess.resize = 10; }, kGpu, ImageForm::kPixels,
       "the CPU varies each"},
      {"another size", [](LoaderSettings& s) { s.preprocess.width = 9; }, kGpu, ImageForm::kPixels,
       "another size"},
      {"skipping", [](LoaderSettings& s) { s.loader.on_error = OnError::kSkip; }, kGpu, ImageForm::kPixels,
       "on_error is skip"},
      {"erased to a constant", [](LoaderSettings& s) { s.augment.erase = 0.5; }, kGpu, ImageForm::kStored,
       "all 40"},
      {"erased to noise",
       [](LoaderSettings& s) { s.augment.erase = 0.5, s.augment.erase_mode = EraseMode::kPixel; }, kGpu,
       ImageForm::kFloats, "erase_mode is pixel"},
      {"erased to noise, but never",
       [](LoaderSettings& s) { s.augment.erase = 0, s.augment.erase_mode = EraseMode::kPixel; }, kGpu,
       ImageForm::kStored, "all 40"},
      {"as many boxes as a recipe holds",
       [](LoaderSettings& s) { s.augment.erase = 0.5, s.augment.erase_count = 4; }, kGpu, ImageForm::kStored,
       "all 40"},
      {"many boxes", [](LoaderSettings& s) { s.augment.erase = 0.5, s.augment.erase_count = 5; }, kGpu,
       ImageForm::kFloats, "erase_count is 5"},
      {"a teacher",
       on(OnDevice::kDataset),
       {.needs_floats = "the teacher reads them too"},
       ImageForm::kFloats,
       "the teacher"},
  };
  const auto data = open_dataset("synthetic:3x8x8x4x40", Part::kTrain);
  for (const FormCase& c : cases) {
    LoaderSettings settings = small_settings();
    c.change(settings);
    const ImageChoice choice = choose_images(settings, *data, c.limits);
    EXPECT_EQ(choice.form, c.form) << c.name;
    EXPECT_EQ(choice.note.empty(), *c.note == '\0') << c.name << ": " << choice.note;
    EXPECT_NE(choice.note.find(c.note), std::string::npos) << c.name << ": " << choice.note;
  }
  EXPECT_EQ(choose_images(small_settings(), FakeDataset(9, 5), kGpu).form, ImageForm::kPixels);
}

TEST(ImageForm, SaysHowMuchTheyTakeAndHowManyFit) {
  LoaderSettings settings = small_settings();
  settings.preprocess.height = settings.preprocess.width = settings.preprocess.resize = 1024;
  const auto large = open_dataset("synthetic:3x1024x1024x2x1024", Part::kTrain);
  EXPECT_EQ(choose_images(settings, *large, kGpu).note,
            "made on the device from 8-bit pixels; not all kept there, since they take 3.0 GiB");
  const size_t exact = size_t{3} << 30;
  EXPECT_EQ(choose_images(settings, *large, {.own_memory = true, .stored_bytes = exact}).form,
            ImageForm::kStored);
  settings = small_settings();
  settings.loader.on_device = OnDevice::kDataset;
  const auto most = open_dataset("synthetic:3x8x8x2x2147483647", Part::kTrain),
             beyond = open_dataset("synthetic:3x8x8x2x2147483648", Part::kTrain);
  EXPECT_EQ(choose_images(settings, *most, kCpu).form, ImageForm::kStored);
  EXPECT_NE(choose_images(settings, *beyond, kCpu).note.find("since there are more than 2^31"),
            std::string::npos);
}

TEST(ImageForm, StagingShrinksWithIt) {
  LoaderSettings settings = small_settings();
  settings.preprocess.height = settings.preprocess.width = 64;
  const size_t floats = Loader::staging_bytes(settings);
  settings.form = ImageForm::kPixels;
  const size_t pixels = Loader::staging_bytes(settings);
  settings.form = ImageForm::kStored;
  EXPECT_LT(pixels, floats / 3);
  EXPECT_LT(Loader::staging_bytes(settings), pixels / 20);
}

TEST(ImageForm, WorkersAndSeekingDoNotChangeRecipes) {
  const auto data = open_dataset("synthetic:3x8x8x5x40", Part::kTrain);
  LoaderSettings settings = small_settings(1);
  settings.form = ImageForm::kStored;
  settings.augment.crop = CropKind::kPad;
  settings.augment.cutmix = 1;
  settings.augment.mix_group = 4;
  const auto bytes_of = [](const Batch& batch) {
    const auto bytes = std::as_bytes(batch.recipes);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  auto one = make_train_loader(*data, settings);
  settings.loader.workers = 3;
  auto three = make_train_loader(*data, settings);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(bytes_of(one->next()) == bytes_of(three->next())) << i;
  one->seek(3);
  three->seek(3);
  EXPECT_TRUE(bytes_of(one->next()) == bytes_of(three->next()));
}

TEST(ImageForm, StoredPixelsAreTheSamplesInOrderAndChannels) {
  const auto data = open_dataset("synthetic:1x8x8x4x40", Part::kTrain);
  const LoaderSettings settings = small_settings();
  std::vector<uint8_t> all;
  read_stored_pixels(settings, *data, [&](size_t offset, std::span<const uint8_t> pixels) {
    EXPECT_EQ(offset, all.size());
    all.insert(all.end(), pixels.begin(), pixels.end());
  });
  ASSERT_EQ(all.size(), 40u * 192);
  const Image last = data->load(39, 0);
  for (size_t i = 0; i < 192; ++i) EXPECT_EQ(all[39 * 192 + i], last.pixels[i / 3]);
  const std::vector<float> levels = image_levels(settings);
  ASSERT_EQ(levels.size(), 3u * 256);
  EXPECT_EQ(levels[256 + 17], level_tables(settings.preprocess, 3)[1][17]);
  // More than is read at once.
  LoaderSettings large = small_settings();
  large.preprocess.height = large.preprocess.width = 1500;
  const auto three = open_dataset("synthetic:3x1500x1500x2x5", Part::kTrain);
  size_t expected = 0, pieces = 0;
  read_stored_pixels(large, *three, [&](size_t offset, std::span<const uint8_t> pixels) {
    EXPECT_EQ(offset, expected);
    expected += pixels.size(), ++pieces;
  });
  EXPECT_EQ(expected, 5u * 3 * 1500 * 1500);
  EXPECT_EQ(pieces, 3u);
  const FakeDataset uneven(3, 2, 8);
  EXPECT_THROW(read_stored_pixels(settings, uneven, [](size_t, std::span<const uint8_t>) {}), Error);
}

}  // namespace
}  // namespace vitrail
