// The public API of models as a program sees it: these tests include vitrail/ and nothing of src/.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "source_root.h"

namespace {

using vitrail::ImageView;
using vitrail::Model;

const std::string kPublicModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
const std::string kPublicImages = VT_SOURCE_DIR "/examples/images/";

std::vector<std::string> some_paths() {
  std::vector<std::string> paths;
  for (const char* name : {"astronaut.png", "chelsea.png", "coffee.png", "raccoon.png", "rocket.jpg"})
    paths.push_back(kPublicImages + name);
  return paths;
}

std::vector<ImageView> views_of(const std::vector<std::string>& paths) {
  return {paths.begin(), paths.end()};
}

TEST(PublicModel, SaysWhatItIs) {
  const Model model = Model::load(kPublicModel, {.batch = 3});
  EXPECT_STREQ(vitrail::version(), "0.3.0");
  EXPECT_EQ(model.classes(), 5);
  EXPECT_EQ(model.channels(), 3);
  EXPECT_EQ(model.batch(), 3);
  EXPECT_EQ(model.embed(kPublicImages + "coffee.png").size(), static_cast<size_t>(model.feature_width()));
  EXPECT_EQ(model.preprocess(kPublicImages + "coffee.png").size(),
            static_cast<size_t>(model.channels() * model.image_height() * model.image_width()));
}

TEST(PublicModel, PixelsMayHaveStridesAndOtherChannels) {
  const Model model = Model::load(kPublicModel);
  constexpr int64_t kHeight = 40, kWidth = 50, kStride = 50 * 3 + 7;
  std::vector<uint8_t> packed, strided(kHeight * kStride, 255), rgba, grey, grey_rgb;
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto level = static_cast<uint8_t>(y * 5 + x * 3 + c * 40);
        packed.push_back(level), rgba.push_back(level);
        strided[static_cast<size_t>(y * kStride + x * 3 + c)] = level;
        grey_rgb.push_back(static_cast<uint8_t>(y * 5));
      }
      rgba.push_back(17), grey.push_back(static_cast<uint8_t>(y * 5));
    }
  const auto wanted = model.logits(ImageView::pixels(packed, kHeight, kWidth));
  EXPECT_EQ(model.logits(ImageView::pixels(strided, kHeight, kWidth, 3, kStride)), wanted);
  EXPECT_EQ(model.logits(ImageView::pixels(rgba, kHeight, kWidth, 4)), wanted);
  EXPECT_EQ(model.logits(ImageView::pixels(grey, kHeight, kWidth, 1)),
            model.logits(ImageView::pixels(grey_rgb, kHeight, kWidth)));
}

TEST(PublicModel, ManyGetTheAnswersOfOneToTheBit) {
  const std::vector<std::string> paths = some_paths();
  const Model one = Model::load(kPublicModel);
  for (const int64_t batch : {1, 2, 4, 64}) {
    const Model model = Model::load(kPublicModel, {.batch = batch});
    const auto classes = model.classify(views_of(paths), 5);
    const auto logits = model.logits(views_of(paths)), features = model.embed(views_of(paths));
    ASSERT_EQ(classes.size(), paths.size());
    ASSERT_EQ(logits.count, std::ssize(paths));
    for (size_t i = 0; i < paths.size(); ++i) {
      const auto row = logits[static_cast<int64_t>(i)], feature = features[static_cast<int64_t>(i)];
      EXPECT_EQ(std::vector(row.begin(), row.end()), one.logits(paths[i]));
      EXPECT_EQ(std::vector(feature.begin(), feature.end()), one.embed(paths[i]));
      const auto single = one.classify(paths[i]);
      ASSERT_EQ(classes[i].size(), single.size());
      for (size_t k = 0; k < single.size(); ++k) {
        EXPECT_EQ(classes[i][k].index, single[k].index);
        EXPECT_EQ(classes[i][k].probability, single[k].probability);
      }
    }
  }
}

TEST(PublicModel, AttentionIsOneWeightAPatch) {
  const Model model = Model::load(kPublicModel, {.batch = 4});
  const ImageView image = ImageView::file(kPublicImages + "chelsea.png");
  const auto rollout = model.attention(image);
  ASSERT_EQ(rollout.size(), 1u);
  EXPECT_EQ(rollout[0].name, "rollout");
  EXPECT_EQ(rollout[0].rows * rollout[0].columns, std::ssize(rollout[0].values));
  const auto all = model.attention(image, {.method = "all", .layer = 0});
  EXPECT_GT(all.size(), 3u);
  double sum = 0;
  for (const float weight : all[0].values) sum += static_cast<double>(weight);
  EXPECT_GT(sum, 0.5);
  EXPECT_LE(sum, 1.0 + 1e-6);
  EXPECT_NE(all[0].values, model.attention(image, {.method = "mean"})[0].values);
}

TEST(PublicModel, FalseEndsAStreamAndTheCallbackMayUseTheModel) {
  const Model model = Model::load(kPublicModel, {.batch = 4});
  const std::vector<std::string> paths = some_paths();
  size_t calls = 0;
  model.embed_files(paths, [&](const vitrail::FileResult& result) {
    EXPECT_EQ(std::vector(result.values.begin(), result.values.end()), model.embed(paths[result.index]));
    return ++calls < 3;
  });
  EXPECT_EQ(calls, 3u);
}

TEST(PublicModel, ACallbackMayThrowAndTheModelGoesOn) {
  const Model model = Model::load(kPublicModel, {.batch = 2});
  const std::vector<std::string> paths = some_paths();
  EXPECT_THROW(model.classify_files(
                   paths, [](const vitrail::FileResult&) -> bool { throw std::runtime_error("mine"); }),
               std::runtime_error);
  EXPECT_EQ(model.classify(paths[0]).size(), 5u);
}

TEST(PublicModel, OtherInputSizesAndTypes) {
  const ImageView image = ImageView::file(kPublicImages + "coffee.png");
  const Model plain = Model::load(kPublicModel);
  const Model larger = Model::load(kPublicModel, {.image_size = 2 * plain.image_height()});
  EXPECT_EQ(larger.image_width(), 2 * plain.image_height());
  EXPECT_NE(larger.logits(image), plain.logits(image));
  const Model rounded = Model::load(kPublicModel, {.dtype = "bf16", .threads = 1});
  const std::vector<float> exact = plain.logits(image), near = rounded.logits(image);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(near[i], exact[i], 0.1);
  EXPECT_NE(near, exact);
}

// What a model says of some files when a single thread asks.
struct Answers {
  std::vector<std::string> paths = some_paths();
  std::vector<std::vector<float>> inputs, logits, features, maps;
};

Answers answers_of(const Model& model) {
  Answers known;
  for (const std::string& path : known.paths) {
    known.inputs.push_back(model.preprocess(path));
    known.logits.push_back(model.logits(path));
    known.features.push_back(model.embed(path));
    known.maps.push_back(model.attention(path).front().values);
  }
  return known;
}

// Returns how many answers to calls with one image or two, `shift` files apart, are other than those known.
int wrong_of_calls(const Model& model, const Answers& known, size_t shift) {
  int wrong = 0;
  for (size_t i = 0; i < known.paths.size(); ++i) {
    const size_t mine = (i + shift) % known.paths.size();
    wrong += model.preprocess(known.paths[mine]) != known.inputs[mine];
    wrong += model.logits(known.paths[mine]) != known.logits[mine];
    wrong += model.embed(known.paths[mine]) != known.features[mine];
    wrong += model.classify(views_of(known.paths), 1).size() != known.paths.size();
    const auto maps = model.attention(views_of({known.paths[mine], known.paths[i]}));
    wrong += maps.at(0).front().values != known.maps[mine] || maps.at(1).front().values != known.maps[i];
  }
  return wrong;
}

// Returns how many results of the four streams over all files are other than those known.
int wrong_of_streams(const Model& model, const Answers& known) {
  int wrong = 0;
  const auto expecting = [&wrong](const std::vector<std::vector<float>>& rows) {
    return [&wrong, &rows](const vitrail::FileResult& result) {
      wrong += !std::ranges::equal(result.values, rows[result.index]);
      return true;
    };
  };
  model.logits_files(known.paths, expecting(known.logits));
  model.embed_files(known.paths, expecting(known.features));
  model.attention_files(known.paths, [&](const vitrail::FileAttention& result) {
    wrong += result.maps.front().values != known.maps[result.index];
    return true;
  });
  model.classify_files(known.paths, [&](const vitrail::FileResult& result) {
    const auto& row = known.logits[result.index];
    wrong += result.predictions.front().index != std::ranges::max_element(row) - row.begin();
    return true;
  });
  return wrong;
}

// Eight threads on one model, each with calls of every kind: answers are those of a thread alone.
TEST(PublicModelThreads, OneModelServesEight) {
  const Model model = Model::load(kPublicModel, {.threads = 2, .batch = 4});
  const Answers known = answers_of(model);
  std::vector<int> wrong(8, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back(
        [&, t] { wrong[t] = wrong_of_calls(model, known, t) + wrong_of_streams(model, known); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

}  // namespace
