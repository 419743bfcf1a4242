#include <mutex>

#include "api/classify.h"
#include "api/engine.h"
#include "data/decode.h"
#include "data/preprocess.h"
#include "io/cards/imagenet_names.h"
#include "vitrail/vitrail.h"

namespace vitrail {

const char* version() {
  return VITRAIL_VERSION;
}

struct Model::Parts {
  Parts(const OpenedModel& opened, const EngineOptions& options)
      : card(opened.card()), engine(opened, options) {}

  // Runs one picture; calls take turns.
  std::vector<float> run(std::span<const float> pixels, const std::string& output) {
    VT_REQUIRE(pixels.size() == engine.picture_elems(), ErrorKind::kUsage,
               "%zu floats given; a picture has %zu", pixels.size(), engine.picture_elems());
    const std::lock_guard<std::mutex> turn(mutex);
    engine.run(pixels, 1);
    return engine.output(output);
  }

  ModelCard card;
  std::vector<std::string> labels = display_labels(card);
  Engine engine;
  std::mutex mutex;
};

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::load(const std::string& path, const ModelOptions& options) {
  const auto opened = open_model(
      path, {.arch = options.arch, .image_height = options.image_height, .image_width = options.image_width});
  return Model(std::make_unique<Parts>(*opened, EngineOptions{.threads = options.threads, .features = true}));
}

std::vector<float> Model::preprocess(const std::string& picture_path) const {
  std::vector<float> pixels(parts_->engine.picture_elems());
  vitrail::preprocess(load_image(picture_path), parts_->card.preprocess, pixels);
  return pixels;
}

std::vector<float> Model::logits(std::span<const float> pixels) const {
  VT_REQUIRE(classes() > 0, ErrorKind::kUsage, "this model has no classifier");
  return parts_->run(pixels, "logits");
}

std::vector<float> Model::embed(const std::string& picture_path) const {
  return parts_->run(preprocess(picture_path), "features");
}

std::vector<Prediction> Model::classify(const std::string& picture_path, int top_k) const {
  VT_REQUIRE(top_k >= 1, ErrorKind::kUsage, "top_k is %d; it must be at least 1", top_k);
  std::vector<Prediction> predictions;
  const std::vector<float> scores = logits(preprocess(picture_path));
  for (const ClassProbability& top : top_classes(scores, top_k, parts_->card.scores)) {
    const auto index = static_cast<size_t>(top.index);
    const std::vector<std::string>& names = labels();
    predictions.push_back({top.index, index < names.size() ? names[index] : std::string(), top.probability});
  }
  return predictions;
}

int64_t Model::classes() const {
  return parts_->card.config.classes;
}
int64_t Model::channels() const {
  return parts_->card.config.channels;
}
int64_t Model::image_height() const {
  return parts_->card.config.image_height;
}
int64_t Model::image_width() const {
  return parts_->card.config.image_width;
}
const std::vector<std::string>& Model::labels() const {
  return parts_->labels;
}

}  // namespace vitrail
