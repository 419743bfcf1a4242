#include "vitrail/model.h"

#include "api/classify.h"
#include "api/explain.h"
#include "api/image_input.h"
#include "api/predictor.h"
#include "api/settings.h"
#include "base/text.h"
#include "io/find_model.h"
#include "vitrail/version.h"

namespace vitrail {

const char* version() {
  return VITRAIL_VERSION;
}

struct Model::Parts {
  Parts(const OpenedModel& opened, const EngineOptions& options, bool turn)
      : upright(turn), predictor(opened, options, tasks_of(opened.card())) {}

  const ModelCard& card() const { return predictor.card(); }

  void require(PredictTask task) const {
    if (card().config.classes == 0 && task != PredictTask::kEmbed)
      throw Error(ErrorKind::kUsage, "this model has no classes", "embed gives its features");
  }

  // Computes the rows of images in chunks of the model's batch, so that the memory of decoded images stays
  // bounded.
  RowsOfFloats rows(PredictTask task, std::span<const ImageView> images) {
    require(task);
    VT_REQUIRE(images.empty() || images.data() != nullptr, ErrorKind::kUsage, "a span of %zu images at null",
               images.size());
    RowsOfFloats rows{std::ssize(images), 0, {}};
    const auto most = static_cast<size_t>(predictor.batch());
    for (size_t done = 0; done < images.size(); done += most) {
      const std::span<const ImageView> now = images.subspan(done, std::min(most, images.size() - done));
      const int threads = predictor.engine().plan().device.threads;
      const std::vector<float> given =
          finite_rows(task, inputs_of(now, card(), upright, threads), std::ssize(now));
      rows.values.insert(rows.values.end(), given.begin(), given.end());
    }
    rows.width = rows.count > 0 ? std::ssize(rows.values) / rows.count : 0;
    return rows;
  }

  std::vector<float> finite_rows(PredictTask task, std::span<const float> inputs, int64_t count) {
    std::vector<float> raw;
    std::vector<float> rows = predictor.run(task, inputs, count, Remainder::kSmaller, &raw);
    require_finite(raw, task == PredictTask::kEmbed ? "features" : "logits");
    return rows;
  }

  std::vector<Prediction> predictions(std::span<const float> probabilities, int top_k) const {
    std::vector<Prediction> given;
    for (TopClass& top : top_classes(probabilities, predictor.labels(), top_k))
      given.push_back(
          {static_cast<int>(top.index), std::move(top.label), static_cast<float>(top.probability)});
    return given;
  }

  bool upright;
  Predictor predictor;
};

namespace {

void require_top_k(int top_k) {
  VT_REQUIRE(top_k >= 1, ErrorKind::kUsage, "top_k is %d; it must be at least 1", top_k);
}

}  // namespace

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model::Parts& Model::parts() const {
  VT_REQUIRE(parts_ != nullptr, ErrorKind::kUsage, "this Model was moved from: it holds nothing to run");
  return *parts_;
}

Model Model::load(const std::string& path_or_name, const ModelOptions& options) {
  const EngineOptions engine = engine_options(options);
  const auto opened = open_model(find_model(path_or_name), open_options(options));
  return Model(std::make_unique<Parts>(*opened, engine, options.upright));
}

std::vector<std::vector<Prediction>> Model::classify(std::span<const ImageView> images, int top_k) const {
  require_top_k(top_k);
  const RowsOfFloats rows = parts().rows(PredictTask::kClassify, images);
  std::vector<std::vector<Prediction>> given;
  for (int64_t i = 0; i < rows.count; ++i) given.push_back(parts().predictions(rows[i], top_k));
  return given;
}

std::vector<Prediction> Model::classify(const ImageView& image, int top_k) const {
  return std::move(classify(std::span(&image, 1), top_k)[0]);
}

std::vector<Prediction> Model::classify(const std::string& path, int top_k) const {
  return classify(ImageView::file(path), top_k);
}

RowsOfFloats Model::logits(std::span<const ImageView> images) const {
  return parts().rows(PredictTask::kLogits, images);
}

std::vector<float> Model::logits(const ImageView& image) const {
  return std::move(logits(std::span(&image, 1)).values);
}

std::vector<float> Model::logits(std::span<const float> tensors) const {
  parts().require(PredictTask::kLogits);
  const size_t elems = input_elems(parts().card().config);
  VT_REQUIRE(tensors.data() != nullptr && !tensors.empty() && tensors.size() % elems == 0, ErrorKind::kUsage,
             "%zu floats given; an image has %zu", tensors.data() ? tensors.size() : size_t{0}, elems);
  return parts().finite_rows(PredictTask::kLogits, tensors, static_cast<int64_t>(tensors.size() / elems));
}

RowsOfFloats Model::embed(std::span<const ImageView> images) const {
  return parts().rows(PredictTask::kEmbed, images);
}

std::vector<float> Model::embed(const ImageView& image) const {
  return std::move(embed(std::span(&image, 1)).values);
}

std::vector<float> Model::embed(const std::string& path) const {
  return embed(ImageView::file(path));
}

std::vector<AttentionMap> Model::attention(const ImageView& image, const AttentionOptions& options) const {
  Parts& own = parts();
  const VitConfig& config = own.card().config;
  const AttentionRequest request = attention_request(options.method, options.layer, config, "layer");
  const std::vector<float> input = inputs_of({&image, 1}, own.card(), own.upright, 1);
  const std::vector<NamedMap> maps = own.predictor.explain(input, request).maps;
  std::vector<AttentionMap> given;
  given.reserve(maps.size());
  for (const NamedMap& map : maps)
    given.push_back({map.name, config.grid_height(), config.grid_width(), map.map});
  return given;
}

std::vector<float> Model::preprocess(const ImageView& image) const {
  return inputs_of({&image, 1}, parts().card(), parts().upright, 1);
}

std::vector<float> Model::preprocess(const std::string& path) const {
  return preprocess(ImageView::file(path));
}

namespace {

// Reads and computes files and reports their results until the list ends or the callback returns false.
template <typename Answer>
void stream_files(Predictor& predictor, bool upright, PredictTask task, std::span<const std::string> paths,
                  const FileCallback& callback, const Answer& answer) {
  VT_REQUIRE(callback != nullptr, ErrorKind::kUsage, "expected a callback, found none");
  VT_REQUIRE(paths.empty() || paths.data() != nullptr, ErrorKind::kUsage, "a span of %zu paths at null",
             paths.size());
  const std::vector<std::string> list(paths.begin(), paths.end());
  if (list.empty()) return;
  EngineOptions engine = predictor.engine().options();
  engine.batch = even_batch(std::ssize(list), engine.batch);
  ImageStream stream(list, stream_settings(predictor.card(), engine, upright));
  while (!stream.done()) {
    const ImageBatch batch = stream.next();
    std::vector<float> rows;
    for (const ImageRow& row : predictor.run(task, batch, list, Remainder::kSmaller, rows)) {
      FileResult result;
      result.index = row.index;
      if (row.error)
        result.error = row.error->what();
      else
        answer(row.values, result);
      if (!callback(result)) return;
    }
  }
}

}  // namespace

void Model::classify_files(std::span<const std::string> paths, const FileCallback& callback,
                           int top_k) const {
  require_top_k(top_k);
  parts().require(PredictTask::kClassify);
  stream_files(parts().predictor, parts().upright, PredictTask::kClassify, paths, callback,
               [&](std::span<const float> row, FileResult& result) {
                 result.predictions = parts().predictions(row, top_k);
               });
}

void Model::embed_files(std::span<const std::string> paths, const FileCallback& callback) const {
  stream_files(parts().predictor, parts().upright, PredictTask::kEmbed, paths, callback,
               [](std::span<const float> row, FileResult& result) { result.features = row; });
}

int64_t Model::classes() const {
  return parts().card().config.classes;
}
int64_t Model::channels() const {
  return parts().card().config.channels;
}
int64_t Model::image_height() const {
  return parts().card().config.image_height;
}
int64_t Model::image_width() const {
  return parts().card().config.image_width;
}
int64_t Model::feature_width() const {
  return parts().card().config.width;
}
int64_t Model::batch() const {
  return parts().predictor.batch();
}
const std::vector<std::string>& Model::labels() const {
  return parts().predictor.labels();
}

}  // namespace vitrail
