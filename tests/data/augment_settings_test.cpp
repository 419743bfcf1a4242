// Every setting of augmentation and loading has an effect: changing it changes the images of a run, as often
// as it states; those that must not change anything do not.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "data/loader_helpers.h"

namespace vitrail {
namespace {

using test::Copy;
using test::FakeDataset;
using test::take;

// Settings under which each of them matters.
LoaderSettings lively() {
  LoaderSettings s = test::small_settings();
  s.augment.crop = CropKind::kResized;
  s.augment.vflip = 0.5;
  s.augment.policy = "rand-m9-mstd0.5-inc1";
  s.augment.colour_jitter = {0.3};
  s.augment.colour_jitter_prob = 0.9;
  s.augment.grayscale = 0.2;
  s.augment.blur = 0.5;
  s.augment.erase = 0.7;
  s.augment.erase_count = 2;
  s.augment.mixup = 0.8;
  s.augment.cutmix = 1;
  s.augment.mix_prob = 0.9;
  s.augment.mix_group = 4;
  return s;
}

std::vector<Copy> shown(const LoaderSettings& settings) {
  FakeDataset data(40, 5);
  for (int64_t i = 0; i < 20; ++i) data.set_labels(i, {0});  // uneven, so that balancing shows
  return take(*make_train_loader(data, settings), 10);
}

using Change = std::function<void(LoaderSettings&)>;
struct Row {
  Change prepare, change;
};

void nothing(LoaderSettings&) {}
void pads(LoaderSettings& s) {
  s.augment.crop = CropKind::kPad;
}

const std::map<std::string, Row>& augment_rows() {
  static const std::map<std::string, Row> rows = {
      {"crop", {nothing, [](auto& s) { s.augment.crop = CropKind::kNone; }}},
      {"crop_scale",
       {nothing,
        [](auto& s) {
          s.augment.crop_scale = {0.5, 1};
        }}},
      {"crop_ratio",
       {nothing,
        [](auto& s) {
          s.augment.crop_ratio = {0.9, 1.1};
        }}},
      {"pad", {pads, [](auto& s) { s.augment.pad = 2; }}},
      {"pad_mode", {pads, [](auto& s) { s.augment.pad_mode = PadMode::kReflect; }}},
      {"interpolation", {nothing, [](auto& s) { s.augment.interpolation = AugmentInterpolation::kNearest; }}},
      {"hflip", {nothing, [](auto& s) { s.augment.hflip = 0; }}},
      {"vflip", {nothing, [](auto& s) { s.augment.vflip = 0; }}},
      {"policy", {nothing, [](auto& s) { s.augment.policy = "v0"; }}},
      {"colour_jitter",
       {nothing,
        [](auto& s) {
          s.augment.colour_jitter = {0.4, 0.3, 0.3, 0.1};
        }}},
      {"colour_jitter_prob", {nothing, [](auto& s) { s.augment.colour_jitter_prob = 0.2; }}},
      {"grayscale", {nothing, [](auto& s) { s.augment.grayscale = 0.6; }}},
      {"blur", {nothing, [](auto& s) { s.augment.blur = 0.1; }}},
      {"blur_sigma",
       {nothing,
        [](auto& s) {
          s.augment.blur_sigma = {1, 3};
        }}},
      {"erase", {nothing, [](auto& s) { s.augment.erase = 0.2; }}},
      {"erase_mode", {nothing, [](auto& s) { s.augment.erase_mode = EraseMode::kRand; }}},
      {"erase_count", {nothing, [](auto& s) { s.augment.erase_count = 4; }}},
      {"erase_area",
       {nothing,
        [](auto& s) {
          s.augment.erase_area = {0.2, 0.5};
        }}},
      {"mixup", {nothing, [](auto& s) { s.augment.mixup = 0.1; }}},
      {"cutmix", {nothing, [](auto& s) { s.augment.cutmix = 0.1; }}},
      {"mix_prob", {nothing, [](auto& s) { s.augment.mix_prob = 0.4; }}},
      {"mix_switch", {nothing, [](auto& s) { s.augment.mix_switch = 0.1; }}},
      {"mix_group", {nothing, [](auto& s) { s.augment.mix_group = 8; }}},
      {"repeats", {nothing, [](auto& s) { s.augment.repeats = 3; }}},
  };
  return rows;
}

TEST(AugmentSettings, EveryOneChangesWhatIsShown) {
  const AugmentConfig listed;
  AugmentConfig::fields(listed, [](const char* name, const auto&, const char*) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(augment_rows().contains(name)) << "a setting without a row here";
    const Row& row = augment_rows().at(name);
    LoaderSettings settings = lively();
    row.prepare(settings);
    const std::vector<Copy> before = shown(settings);
    EXPECT_TRUE(shown(settings) == before) << "the test itself is not repeatable";
    row.change(settings);
    EXPECT_FALSE(shown(settings) == before);
  });
}

TEST(LoaderSettings, EveryOneDoesWhatItSays) {
  const std::map<std::string, Change> changing = {
      {"balanced", [](auto& s) { s.loader.balanced = true; }},
      {"class_weights", [](auto& s) { s.loader.class_weights = true; }}};
  const std::map<std::string, Change> neutral = {
      {"workers", [](auto& s) { s.loader.workers = 3; }},
      {"prefetch", [](auto& s) { s.loader.prefetch = 1; }},
      {"on_device", [](auto& s) { s.loader.on_device = OnDevice::kImages; }}};  // the trainer's to obey
  const std::set<std::string> elsewhere = {"on_error", "max_bad_fraction"};     // LoaderErrors
  const std::vector<Copy> before = shown(lively());
  const LoaderConfig listed;
  LoaderConfig::fields(listed, [&](const char* name, const auto&, const char*) {
    SCOPED_TRACE(name);
    ASSERT_EQ(changing.contains(name) + neutral.contains(name) + elsewhere.contains(name), 1)
        << "a setting without a row here";
    if (elsewhere.contains(name)) return;
    LoaderSettings settings = lively();
    (changing.contains(name) ? changing : neutral).at(name)(settings);
    EXPECT_EQ(shown(settings) == before, neutral.contains(name));
  });
}

TEST(LoaderSettings, SeedAndSmoothingChangeWhatIsShown) {
  const std::vector<Copy> before = shown(lively());
  LoaderSettings settings = lively();
  settings.seed = 12;
  EXPECT_NE(shown(settings)[0].samples, before[0].samples);
  settings = lively();
  settings.smoothing = 0.1;
  EXPECT_EQ(shown(settings)[0].images, before[0].images);
  EXPECT_NE(shown(settings)[0].targets, before[0].targets);
}

}  // namespace
}  // namespace vitrail
