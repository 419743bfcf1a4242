// What a careless program does to the public API: every mistake is an exception with its kind, expected and
// found, and leaves the model as it was.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vitrail/vitrail.h>

#include <functional>
#include <limits>

#include "hostile_calls.h"
#include "io/model_files.h"
#include "temp_folder.h"

namespace {

using hostile::expect_error;
using hostile::kImage;
using hostile::kModel;
using vitrail::ErrorKind;
using vitrail::ImageView;
using vitrail::Model;

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
  expect_error(ErrorKind::kData, "no model ''", [] { Model::load(""); });
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
  expect_error(ErrorKind::kData, "there is no image \"/no/such.png\"",
               [&] { model.classify("/no/such.png"); });
  expect_error(ErrorKind::kUsage, "expected the path of an image, found none", [&] { model.classify(""); });
  expect_error(ErrorKind::kUsage, "expected the path of an image, found none",
               [&] { model.attention(static_cast<const char*>(nullptr)); });
  const std::vector<float> floats(11);
  expect_error(ErrorKind::kUsage, "11 floats given", [&] { model.logits(ImageView::tensor(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(ImageView::tensor({})); });
  expect_error(ErrorKind::kUsage, "11 floats given", [&] { model.logits(std::span<const float>(floats)); });
  expect_error(ErrorKind::kUsage, "0 floats given", [&] { model.logits(std::span<const float>()); });
  const std::vector<ImageView> two = {ImageView::file(kImage), ImageView::encoded(bytes)};
  expect_error(ErrorKind::kData, "image 1: ", [&] { model.classify(two); });
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "the model goes on";
}

// A file of exactly the most bytes is read, and found to be none; one byte more is not looked at.
TEST(PublicHostile, EncodedImagesHaveAMostNumberOfBytes) {
  constexpr size_t kMost = size_t{256} << 20;
  // Pages that nobody touches take no memory.
  void* const memory = ::mmap(nullptr, kMost + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(memory), kMost + 1);
  const Model model = Model::load(kModel);
  expect_error(ErrorKind::kData, "expected a JPEG",
               [&] { model.logits(ImageView::encoded(bytes.first(kMost))); });
  expect_error(ErrorKind::kData, "an encoded image of 268435457 bytes: at most 268435456",
               [&] { model.logits(ImageView::encoded(bytes)); });
  ::munmap(memory, kMost + 1);
}

TEST(PublicHostile, EmptyListsAndWordsThatAreNone) {
  const Model model = Model::load(kModel);
  EXPECT_TRUE(model.classify(std::span<const ImageView>()).empty());
  EXPECT_EQ(model.embed(std::span<const ImageView>()).count, 0);
  EXPECT_EQ(model.logits(std::span<const ImageView>()).count, 0);
  const vitrail::RowsOfFloats rows{.count = 1, .width = 2, .values = {3, 4}};
  EXPECT_EQ(rows[0][1], 4);
  for (const int64_t row : {int64_t{-1}, int64_t{1}, INT64_MAX})
    expect_error(ErrorKind::kUsage, "there is no row " + std::to_string(row) + " of 1 rows of 2 in 2 values",
                 [&] { (void)rows[row]; });
  model.classify_files({}, [](const vitrail::FileResult&) { return true; });
  expect_error(ErrorKind::kUsage, "callback", [&] { model.classify_files(std::vector{kImage}, nullptr); });
  expect_error(ErrorKind::kUsage, "callback", [&] { model.attention_files(std::vector{kImage}, nullptr); });
  expect_error(ErrorKind::kUsage, "top_k is 0", [&] { model.classify(kImage, 0); });
  EXPECT_EQ(model.classify(kImage, 1 << 30).size(), 5u);
  const ImageView image = ImageView::file(kImage);
  expect_error(ErrorKind::kUsage, "rollout or all", [&] { model.attention(image, {.method = "gradcam"}); });
  expect_error(ErrorKind::kUsage, "layer is 99",
               [&] { model.attention(image, {.method = "mean", .layer = 99}); });
  expect_error(ErrorKind::kUsage, "layer is 99", [&] {
    model.attention_files(std::vector{kImage}, [](const auto&) { return true; },
                          {.method = "mean", .layer = 99});
  });
  for (const int64_t layer : {int64_t{-2}, INT64_MIN}) {
    const vitrail::AttentionOptions options{.method = "mean", .layer = layer};
    const std::string words = "layer is " + std::to_string(layer) + ": expected a block from 0 to ";
    expect_error(ErrorKind::kUsage, words, [&] { model.attention(image, options); });
    expect_error(ErrorKind::kUsage, words, [&] {
      model.attention_files(
          std::vector{kImage}, [](const auto&) { return true; }, options);
    });
  }
}

// For the system a NUL ends a path: "coffee.png\0x" would be read as coffee.png.
TEST(PublicHostile, PathsWithANul) {
  const std::string tail("\0x", 2), image = kImage + tail, words = "a NUL ends a path";
  const Model model = Model::load(kModel);
  const std::vector<ImageView> views = {ImageView::file(kImage), ImageView::file(image)};
  expect_error(ErrorKind::kUsage, words, [&] { model.classify(image); });
  expect_error(ErrorKind::kUsage, words, [&] { model.preprocess(std::string("/no") + tail); });
  expect_error(ErrorKind::kUsage, "image 1: expected a path, found ", [&] { model.embed(views); });
  const std::vector<std::string> paths = {kImage, image};
  int results = 0;
  const auto counted = [&](const auto&) { return ++results > 0; };
  expect_error(ErrorKind::kUsage, "image 1: expected a path, found ",
               [&] { model.classify_files(paths, counted); });
  expect_error(ErrorKind::kUsage, words, [&] { model.logits_files(paths, counted); });
  expect_error(ErrorKind::kUsage, words, [&] { model.embed_files(paths, counted); });
  expect_error(ErrorKind::kUsage, words, [&] { model.attention_files(paths, counted); });
  EXPECT_EQ(results, 0) << "before any file is read";
  expect_error(ErrorKind::kUsage, words, [&] { Model::load(kModel + tail); });
  expect_error(ErrorKind::kUsage, words, [&] { vitrail::plan_inference(kModel + tail); });
  const vitrail::TempFolder folder;
  const std::string run = (folder.path() / "run").string();
  expect_error(ErrorKind::kUsage, words, [&] { vitrail::train("{}", {.folder = run + tail}); });
  EXPECT_FALSE(std::filesystem::exists(run));
}

template <typename Rows>
constexpr bool kGivesRows = requires(Rows&& rows) {
  std::forward<Rows>(rows)[0];
};
static_assert(kGivesRows<vitrail::RowsOfFloats&> && kGivesRows<const vitrail::RowsOfFloats&>);
static_assert(!kGivesRows<vitrail::RowsOfFloats> && !kGivesRows<const vitrail::RowsOfFloats>,
              "model.embed(images)[0] would refer to memory that is gone");

TEST(PublicHostile, AModelWithoutClassesHasFeaturesAlone) {
  const vitrail::TempFolder folder;
  const std::string path = (folder.path() / "model").string();
  vitrail::ModelCard card;
  card.config.image_height = card.config.image_width = 16, card.config.patch = 8, card.config.depth = 1;
  card.config.width = 8, card.config.heads = 2, card.config.mlp = 16, card.config.classes = 0;
  card.preprocess.height = card.preprocess.width = 16;
  vitrail::write_model(
      path, card, {.dialect = vitrail::Dialect::kTimm},
      [](const vitrail::ParamSpec&, std::span<float> values) { std::ranges::fill(values, 0.5f); });
  const Model model = Model::load(path);
  EXPECT_EQ(model.classes(), 0);
  EXPECT_EQ(model.embed(kImage).size(), 8u);
  EXPECT_FALSE(model.attention(kImage).empty());
  const std::vector<float> input = model.preprocess(kImage);
  const auto ignored = [](const vitrail::FileResult&) { return true; };
  const std::vector<std::string> paths(2, kImage);
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { model.classify(kImage); }, [&] { model.logits(kImage); },
           [&] { model.logits(std::span<const float>(input)); },
           [&] { model.classify_files(paths, ignored); }, [&] { model.logits_files(paths, ignored); }})
    expect_error(ErrorKind::kData, "this model has no classes\n  try: embed gives its features", call);
}

TEST(PublicHostile, RowsAndTensorsThatOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t width : {int64_t{-1}, int64_t{3}, kMost, kLeast, kMost / 2 + 2}) {
    const vitrail::RowsOfFloats rows{.count = 2, .width = width, .values = {3, 4, 5, 6}};
    expect_error(ErrorKind::kUsage,
                 "there is no row 1 of 2 rows of " + std::to_string(width) + " in 4 values",
                 [&] { (void)rows[1]; });
  }
  const std::vector<float> six(6);
  EXPECT_EQ(ImageView::tensors(six, 3).at(2).values().data(), six.data() + 4);
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{-2}, int64_t{4}, int64_t{7}, kMost, kLeast})
    expect_error(ErrorKind::kUsage, "expected the floats of " + std::to_string(count) + " images, found 6",
                 [&] { ImageView::tensors(six, count); });
  expect_error(ErrorKind::kUsage, "expected the floats of 2 images, found 0",
               [] { ImageView::tensors({}, 2); });
  expect_error(ErrorKind::kUsage, "expected the floats of 2 images, found 0",
               [] { ImageView::tensors(std::span(static_cast<const float*>(nullptr), 6), 2); });
}

TEST(PublicHostile, SpansAtNull) {
  const Model model = Model::load(kModel);
  const std::span<const ImageView> images(static_cast<const ImageView*>(nullptr), 3);
  const std::span<const std::string> paths(static_cast<const std::string*>(nullptr), 3);
  const auto ignored = [](const vitrail::FileResult&) { return true; };
  expect_error(ErrorKind::kUsage, "expected 3 images, found a null pointer", [&] { model.classify(images); });
  expect_error(ErrorKind::kUsage, "expected 3 images, found a null pointer", [&] { model.logits(images); });
  expect_error(ErrorKind::kUsage, "expected 3 images, found a null pointer", [&] { model.embed(images); });
  expect_error(ErrorKind::kUsage, "expected 3 images, found a null pointer",
               [&] { model.attention(images); });
  expect_error(ErrorKind::kUsage, "expected 3 paths, found a null pointer",
               [&] { model.classify_files(paths, ignored); });
  expect_error(ErrorKind::kUsage, "expected 3 paths, found a null pointer",
               [&] { model.logits_files(paths, ignored); });
  expect_error(ErrorKind::kUsage, "expected 3 paths, found a null pointer",
               [&] { model.embed_files(paths, ignored); });
  expect_error(ErrorKind::kUsage, "expected 3 paths, found a null pointer",
               [&] { model.attention_files(paths, [](const auto&) { return true; }); });
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
      call([&](const auto& result) {
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
  EXPECT_EQ(number_thrown([&](const auto& callback) { model.logits_files(paths, callback); }), 42);
  EXPECT_EQ(number_thrown([&](const auto& callback) { model.embed_files(paths, callback); }), 42);
  EXPECT_EQ(number_thrown([&](const auto& callback) { model.attention_files(paths, callback); }), 42);
  EXPECT_EQ(model.classify(kImage).size(), 5u) << "the model goes on";
}

}  // namespace
