// What a careless program does to the public API: every mistake is an exception with its kind, expected and
// found, and leaves the model as it was.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <limits>
#include <type_traits>

#include "source_root.h"

namespace {

using vitrail::ErrorKind;
using vitrail::ImageView;
using vitrail::Model;

const std::string kModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
const std::string kImage = VT_SOURCE_DIR "/examples/images/coffee.png";

template <typename Body>
void expect_error(ErrorKind kind, const std::string& words, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "expected an error with: " << words;
  } catch (const vitrail::Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_FALSE(error.message().empty());
  }
}

TEST(PublicHostile, OptionsThatCannotBe) {
  const auto load = [](const vitrail::ModelOptions& options) { Model::load(kModel, options); };
  expect_error(ErrorKind::kUsage, "device expects cpu or cuda[:i], not \"gpu\"",
               [&] { load({.device = "gpu"}); });
  expect_error(ErrorKind::kUsage, "dtype expects one of", [&] { load({.dtype = "f64"}); });
  expect_error(ErrorKind::kUsage, "dtype f16 needs device cuda", [&] { load({.dtype = "f16"}); });
  expect_error(ErrorKind::kUsage, "threads is -1", [&] { load({.threads = -1}); });
  expect_error(ErrorKind::kUsage, "batch is 0", [&] { load({.batch = 0}); });
  expect_error(ErrorKind::kUsage, "batch is 9223372036854775807",
               [&] { load({.batch = std::numeric_limits<int64_t>::max()}); });
  expect_error(ErrorKind::kUsage, "image_size is -3", [&] { load({.image_size = -3}); });
  expect_error(ErrorKind::kUsage, "both sides", [&] { load({.image_height = 32}); });
  expect_error(ErrorKind::kUsage, "square",
               [&] { load({.image_size = 32, .image_height = 32, .image_width = 32}); });
  expect_error(ErrorKind::kData, "no model 'nowhere'", [] { Model::load("nowhere"); });
  expect_error(ErrorKind::kData, "", [] { Model::load(""); });
}

TEST(PublicHostile, MemoryIsRefusedBeforeItIsTaken) {
  expect_error(ErrorKind::kMemory, "needs", [] {
    Model::load(VT_SOURCE_DIR "/models/deit_tiny_patch16_224", {.image_size = 1024, .batch = 65536});
  });
}

TEST(PublicHostile, ViewsThatLie) {
  const Model model = Model::load(kModel, {.batch = 2});
  const std::vector<uint8_t> bytes(300, 7);
  const auto pixels = [&](std::span<const uint8_t> given, int64_t height, int64_t width, int64_t channels = 3,
                          int64_t stride = 0) {
    return [&model, view = ImageView::pixels(given, height, width, channels, stride)] { model.logits(view); };
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  expect_error(ErrorKind::kUsage, "300 bytes given", pixels(bytes, 10, 11));
  expect_error(ErrorKind::kUsage, "0 bytes given", pixels({}, 10, 10));
  expect_error(ErrorKind::kUsage, "0 bytes given",
               pixels(std::span(static_cast<const uint8_t*>(nullptr), 300), 10, 10));
  for (const int64_t side : {int64_t{0}, int64_t{-1}, kLeast, kMost, int64_t{1} << 32}) {
    expect_error(ErrorKind::kUsage, "pixels", pixels(bytes, side, 10));
    expect_error(ErrorKind::kUsage, "pixels", pixels(bytes, 10, side));
  }
  expect_error(ErrorKind::kUsage, "pixels", pixels(bytes, 65535, 65535));
  for (const int64_t channels : {int64_t{0}, int64_t{2}, int64_t{5}, int64_t{-3}, kMost})
    expect_error(ErrorKind::kUsage, "channels", pixels(bytes, 10, 10, channels));
  for (const int64_t stride : {int64_t{29}, int64_t{-30}, kMost, kLeast})
    expect_error(ErrorKind::kUsage, "row stride", pixels(bytes, 10, 10, 3, stride));
  expect_error(ErrorKind::kUsage, "bytes given", pixels(bytes, 10, 10, 3, 31));
  expect_error(ErrorKind::kUsage, "found none", [&] { model.logits(ImageView::encoded({})); });
  expect_error(ErrorKind::kData, "expected a JPEG", [&] { model.logits(ImageView::encoded(bytes)); });
  expect_error(ErrorKind::kData, "there is no image", [&] { model.classify("/no/such.png"); });
  const std::vector<float> floats(11);
  expect_error(ErrorKind::kUsage, "11 floats given", [&] { model.logits(ImageView::tensor(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(ImageView::tensor({})); });
  expect_error(ErrorKind::kUsage, "11 floats given", [&] { model.logits(std::span<const float>(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(std::span<const float>()); });
  const std::vector<ImageView> two = {ImageView::file(kImage), ImageView::encoded(bytes)};
  expect_error(ErrorKind::kData, "image 1: ", [&] { model.classify(two); });
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "the model goes on";
}

TEST(PublicHostile, EmptyListsAndWordsThatAreNone) {
  const Model model = Model::load(kModel);
  EXPECT_TRUE(model.classify(std::span<const ImageView>()).empty());
  EXPECT_EQ(model.embed(std::span<const ImageView>()).count, 0);
  const vitrail::RowsOfFloats rows{.count = 1, .width = 2, .values = {3, 4}};
  EXPECT_EQ(rows[0][1], 4);
  for (const int64_t row : {int64_t{-1}, int64_t{1}, INT64_MAX})
    expect_error(ErrorKind::kUsage, "there is no row", [&] { (void)rows[row]; });
  model.classify_files({}, [](const vitrail::FileResult&) { return true; });
  expect_error(ErrorKind::kUsage, "callback", [&] { model.classify_files(std::vector{kImage}, nullptr); });
  expect_error(ErrorKind::kUsage, "top_k is 0", [&] { model.classify(kImage, 0); });
  EXPECT_EQ(model.classify(kImage, 1 << 30).size(), 5u);
  const ImageView image = ImageView::file(kImage);
  expect_error(ErrorKind::kUsage, "rollout or all", [&] { model.attention(image, {.method = "gradcam"}); });
  expect_error(ErrorKind::kUsage, "layer is 99",
               [&] { model.attention(image, {.method = "mean", .layer = 99}); });
}

TEST(PublicHostile, SpansAtNull) {
  const Model model = Model::load(kModel);
  const std::span<const ImageView> images(static_cast<const ImageView*>(nullptr), 3);
  const std::span<const std::string> paths(static_cast<const std::string*>(nullptr), 3);
  const auto ignored = [](const vitrail::FileResult&) { return true; };
  expect_error(ErrorKind::kUsage, "a span of 3 images at null", [&] { model.classify(images); });
  expect_error(ErrorKind::kUsage, "a span of 3 images at null", [&] { model.logits(images); });
  expect_error(ErrorKind::kUsage, "a span of 3 images at null", [&] { model.embed(images); });
  expect_error(ErrorKind::kUsage, "a span of 3 paths at null", [&] { model.classify_files(paths, ignored); });
  expect_error(ErrorKind::kUsage, "a span of 3 paths at null", [&] { model.embed_files(paths, ignored); });
  // Of a size that would be right.
  const auto elems = static_cast<size_t>(model.channels() * model.image_height() * model.image_width());
  const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(nullptr), 300);
  const std::span<const float> floats(static_cast<const float*>(nullptr), elems);
  expect_error(ErrorKind::kUsage, "found none", [&] { model.logits(ImageView::encoded(bytes)); });
  expect_error(ErrorKind::kUsage, "found none", [&] { model.preprocess(ImageView::encoded(bytes)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(ImageView::tensor(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.attention(ImageView::tensor(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(floats); });
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "the model goes on";
}

// What is thrown need not be an exception of the standard library.
TEST(PublicHostile, CallbacksThatThrowAnything) {
  struct Own {
    int number;
  };
  const Model model = Model::load(kModel);
  const std::vector<std::string> paths(3, kImage);
  const auto number_thrown = [&](const auto& call) {
    int heard = 0;
    try {
      call([&](const vitrail::FileResult& result) {
        ++heard;
        if (result.index == 1) throw Own{42};
        return true;
      });
    } catch (const Own& own) {
      EXPECT_EQ(heard, 2);
      return own.number;
    }
    return 0;
  };
  EXPECT_EQ(number_thrown([&](const auto& callback) { model.classify_files(paths, callback); }), 42);
  EXPECT_EQ(number_thrown([&](const auto& callback) { model.embed_files(paths, callback); }), 42);
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "the model goes on";
}

TEST(PublicHostile, AModelThatWasMovedFrom) {
  Model model = Model::load(kModel);
  const Model taken = std::move(model);
  EXPECT_EQ(taken.classify(kImage).size(), 5u);
  expect_error(ErrorKind::kUsage, "moved from", [&] { model.classify(kImage); });
  expect_error(ErrorKind::kUsage, "moved from", [&] { model.labels(); });
  expect_error(ErrorKind::kUsage, "moved from", [&] { model.embed_files({}, {}); });
  model = Model::load(kModel);
  EXPECT_EQ(model.classes(), 5);
}

static_assert(!std::is_copy_constructible_v<Model> && std::is_nothrow_move_constructible_v<Model>);

}  // namespace
