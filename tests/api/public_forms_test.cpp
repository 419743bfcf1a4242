// Every task of a Model takes every form of an image, one or many, and streams of files; answers are the same
// to the bit.
#include <gtest/gtest.h>
#include <vitrail/vitrail.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "data/decode.h"
#include "source_root.h"

namespace vitrail {
namespace {

const std::string kFormsModel = VT_SOURCE_DIR "/tests/golden/models/timm_hub";
const std::string kFormsImages = VT_SOURCE_DIR "/examples/images/";
const AttentionOptions kAllMaps{.method = "all", .layer = 0};

using Floats = std::vector<float>;

Floats numbers(const std::vector<Prediction>& predictions) {
  Floats given;
  for (const Prediction& one : predictions)
    given.insert(given.end(), {static_cast<float>(one.index), one.probability});
  return given;
}

Floats numbers(const std::vector<AttentionMap>& maps) {
  Floats given;
  for (const AttentionMap& map : maps) given.insert(given.end(), map.values.begin(), map.values.end());
  return given;
}

Floats numbers(std::span<const float> row) {
  return {row.begin(), row.end()};
}

// What the four tasks make of an image.
using Answers = std::vector<Floats>;

Answers of_one(const Model& model, const ImageView& image) {
  return {numbers(model.classify(image)), model.logits(image), model.embed(image),
          numbers(model.attention(image, kAllMaps))};
}

std::vector<Answers> of_many(const Model& model, std::span<const ImageView> images) {
  const auto classes = model.classify(images);
  const RowsOfFloats logits = model.logits(images), features = model.embed(images);
  const auto maps = model.attention(images, kAllMaps);
  std::vector<Answers> given;
  for (size_t i = 0; i < images.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    given.push_back(
        {numbers(classes.at(i)), numbers(logits[row]), numbers(features[row]), numbers(maps.at(i))});
  }
  return given;
}

std::vector<std::string> some_paths() {
  std::vector<std::string> paths;
  for (const char* name : {"astronaut.png", "chelsea.png", "coffee.png", "raccoon.png", "rocket.jpg"})
    paths.push_back(kFormsImages + name);
  return paths;
}

// One image in all of its forms, with the memory behind them.
struct Forms {
  Forms(const Model& model, const std::string& path)
      : image(load_image(path)), tensor(model.preprocess(path)) {
    std::ifstream file(path, std::ios::binary);
    encoded.assign(std::istreambuf_iterator<char>(file), {});
    views = {path,
             path.c_str(),
             ImageView::file(path),
             ImageView::encoded(encoded),
             ImageView::pixels(std::span(image.row(0), static_cast<size_t>(image.height * image.width * 3)),
                               image.height, image.width),
             ImageView::tensor(tensor)};
  }
  Image image;
  std::vector<uint8_t> encoded;
  Floats tensor;
  std::vector<ImageView> views;
};

TEST(PublicForms, EveryTaskTakesEveryFormOneOrMany) {
  for (const int64_t batch : {1, 4}) {
    const Model model = Model::load(kFormsModel, {.batch = batch});
    Forms rocket(model, kFormsImages + "rocket.jpg"), coffee(model, kFormsImages + "coffee.png");
    const Answers wanted = of_one(model, kFormsImages + "rocket.jpg"),
                  other = of_one(model, kFormsImages + "coffee.png");
    EXPECT_NE(wanted, other);
    std::vector<ImageView> mixed;
    for (size_t i = 0; i < rocket.views.size(); ++i) {
      EXPECT_EQ(of_one(model, rocket.views[i]), wanted) << "form " << i;
      mixed.insert(mixed.end(), {rocket.views[i], coffee.views[i]});
    }
    const std::vector<Answers> found = of_many(model, mixed);
    for (size_t i = 0; i < mixed.size(); ++i)
      EXPECT_EQ(found[i], i % 2 ? other : wanted) << "image " << i << " batch " << batch;
  }
}

TEST(PublicForms, TensorsOfManyImagesAreTakenApart) {
  const Model model = Model::load(kFormsModel, {.batch = 2});
  Floats both = model.preprocess(kFormsImages + "rocket.jpg");
  const Floats second = model.preprocess(kFormsImages + "coffee.png");
  both.insert(both.end(), second.begin(), second.end());
  const std::vector<Answers> found = of_many(model, ImageView::tensors(both, 2));
  EXPECT_EQ(found[0], of_one(model, kFormsImages + "rocket.jpg"));
  EXPECT_EQ(found[1], of_one(model, kFormsImages + "coffee.png"));
  EXPECT_EQ(model.logits(std::span<const float>(both)), model.logits(ImageView::tensors(both, 2)).values);
}

// More images than share one program of attention maps.
TEST(PublicForms, AttentionOfManyIsThatOfEach) {
  const Model model = Model::load(kFormsModel);
  const std::vector<std::string> paths = some_paths();
  std::vector<ImageView> images;
  for (size_t i = 0; i < 19; ++i) images.emplace_back(paths[i % paths.size()]);
  const auto found = model.attention(images);
  ASSERT_EQ(found.size(), images.size());
  for (size_t i = 0; i < images.size(); ++i)
    EXPECT_EQ(numbers(found[i]), numbers(model.attention(paths[i % paths.size()]))) << i;
  EXPECT_TRUE(model.attention(std::span<const ImageView>()).empty());
}

TEST(PublicForms, StreamsGiveTheRowsOfOneWithFailuresInTheirPlaces) {
  std::vector<std::string> paths = some_paths();
  paths.insert(paths.begin() + 1, "/no/such.png");
  const Model model = Model::load(kFormsModel, {.batch = 4});
  size_t next = 0;
  const auto watch = [&](auto&& values_of, auto&& predictions_of) {
    next = 0;
    return [&, values_of, predictions_of](const FileResult& file) {
      EXPECT_EQ(file.index, next++);
      if (file.index == 1) {
        EXPECT_TRUE(file.values.empty() && file.predictions.empty());
        EXPECT_TRUE(file.error && file.error->kind() == ErrorKind::kData);
        EXPECT_NE(file.error->message().find("there is no image \"/no/such.png\""), std::string::npos)
            << file.error->what();
        return true;
      }
      EXPECT_FALSE(file.error);
      EXPECT_EQ(numbers(file.values), values_of(paths[file.index]));
      EXPECT_EQ(numbers(file.predictions), predictions_of(paths[file.index]));
      return true;
    };
  };
  const auto none = [](const std::string&) { return Floats(); };
  model.logits_files(paths, watch([&](auto& path) { return model.logits(path); }, none));
  EXPECT_EQ(next, paths.size());
  model.embed_files(paths, watch([&](auto& path) { return model.embed(path); }, none));
  EXPECT_EQ(next, paths.size());
  const auto probabilities = [&](const std::string& path) {
    Floats given(static_cast<size_t>(model.classes()));
    for (const Prediction& one : model.classify(path))
      given[static_cast<size_t>(one.index)] = one.probability;
    return given;
  };
  model.classify_files(paths,
                       watch(probabilities, [&](auto& path) { return numbers(model.classify(path, 2)); }), 2);
  EXPECT_EQ(next, paths.size());
}

// More files than share one program of attention maps.
TEST(PublicForms, AttentionOfFilesHasFailuresInTheirPlacesToo) {
  const Model model = Model::load(kFormsModel);
  const std::vector<std::string> good = some_paths();
  std::vector<std::string> paths;
  for (size_t i = 0; i < 19; ++i) paths.push_back(i % 17 == 1 ? "/no/such.png" : good[i % good.size()]);
  size_t next = 0;
  const auto watch = [&](const FileAttention& file) {
    EXPECT_EQ(file.index, next++);
    EXPECT_EQ(file.error.has_value(), file.index % 17 == 1);
    if (file.error) {
      EXPECT_EQ(file.error->kind(), ErrorKind::kData);
      EXPECT_TRUE(file.maps.empty());
    } else {
      EXPECT_EQ(numbers(file.maps), numbers(model.attention(paths[file.index], kAllMaps))) << file.index;
    }
    return next < 19;
  };
  model.attention_files(paths, watch, kAllMaps);
  EXPECT_EQ(next, 19u);
  next = 18;
  model.attention_files({}, watch);
  EXPECT_EQ(next, 18u);
  model.attention_files(std::span(paths), [&](const FileAttention&) { return ++next < 20; });
  EXPECT_EQ(next, 20u) << "false ends the stream";
}

// The number is that in the list, whatever the batch in which it is computed.
TEST(PublicForms, AnErrorNamesTheImage) {
  for (const int64_t batch : {1, 2, 8}) {
    const Model model = Model::load(kFormsModel, {.batch = batch});
    const Floats good = model.preprocess(kFormsImages + "coffee.png"), bad(good.size(), NAN);
    const auto told = [&](const ImageView& fourth, const auto& call) {
      const std::vector<ImageView> images = {ImageView::tensor(good), ImageView::tensor(good),
                                             ImageView::tensor(good), fourth, ImageView::tensor(good)};
      try {
        call(images);
      } catch (const Error& error) {
        return error.context().empty() ? "no place" : error.context()[0];
      }
      return std::string("no error");
    };
    for (const ImageView& fourth : {ImageView("/no/such.png"), ImageView::tensor(bad)}) {
      EXPECT_EQ(told(fourth, [&](auto& images) { model.classify(images); }), "image 3") << batch;
      EXPECT_EQ(told(fourth, [&](auto& images) { model.logits(images); }), "image 3") << batch;
      EXPECT_EQ(told(fourth, [&](auto& images) { model.embed(images); }), "image 3") << batch;
      EXPECT_EQ(told(fourth, [&](auto& images) { model.attention(images); }), "image 3") << batch;
    }
  }
}

TEST(PublicForms, AnErrorSaysWhatIsNotFinite) {
  const Model model = Model::load(kFormsModel);
  const Floats bad(model.preprocess(kFormsImages + "coffee.png").size(), NAN);
  const auto told = [&](const auto& call) -> std::string {
    try {
      call(ImageView::tensor(bad));
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  const std::string logits = told([&](const ImageView&image) { model.logits(image); }),
                    classes = told([&](const ImageView&image) { model.classify(image); }),
                    features = told([&](const ImageView&image) { model.embed(image); });
  EXPECT_TRUE(logits.starts_with("the model gives NaN or infinity: ") && logits.ends_with(" logits"))
      << logits;
  EXPECT_EQ(classes, logits) << "no class is the likeliest";
  EXPECT_TRUE(features.ends_with(" features")) << features;
}

}  // namespace
}  // namespace vitrail
