// vitrail::Model: the functions of the public class, each handed on to its ModelParts.
#include "vitrail/model.h"

#include "api/image_input.h"
#include "api/model_parts.h"
#include "api/option_words.h"
#include "api/settings.h"
#include "base/file.h"
#include "base/text.h"
#include "io/find_model.h"
#include "vitrail/version.h"

namespace vitrail {

const char* version() {
  return VITRAIL_VERSION;
}

namespace {

void require_top_k(int top_k) {
  VT_REQUIRE(top_k >= 1, ErrorKind::kUsage, "top_k is %d; it must be at least 1", top_k);
}

// Calls in the words of the options that the model was loaded with.
template <typename Call>
auto called(const Call& call, const CallerThrow& caller = {}) {
  return in_words_of_options("ModelOptions", call, caller);
}

// The parts must outlive the call, whatever the callback does with the model.
void stream(ModelParts& own, PredictTask task, std::span<const std::string> paths,
            const FileCallback& callback, const std::function<void(FileResult&)>& complete = {}) {
  CallerThrow caller;
  called([&] { own.stream(task, paths, kept_by(caller, callback), complete); }, caller);
}

}  // namespace

// Every call holds the parts until it ends: the Model may be moved from meanwhile.
Model::Model(std::shared_ptr<ModelParts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;
Model::Model(Model&& other) noexcept : parts_(other.taken()) {}

Model& Model::operator=(Model&& other) noexcept {
  std::shared_ptr<ModelParts> parts = other.taken();
  const std::lock_guard lock(mutex_);
  parts_.swap(parts);
  return *this;
}

std::shared_ptr<ModelParts> Model::taken() noexcept {
  const std::lock_guard lock(mutex_);
  return std::move(parts_);
}

std::shared_ptr<ModelParts> Model::parts() const {
  const std::lock_guard lock(mutex_);
  VT_REQUIRE(parts_ != nullptr, ErrorKind::kUsage,
             "expected a loaded Model, found one that was moved from: it holds nothing to run");
  return parts_;
}

Model Model::load(const std::string& path_or_name, const ModelOptions& options) {
  return called([&] {
    require_path(path_or_name);
    const EngineOptions engine = engine_options(options);
    const auto opened = open_model(find_model(path_or_name), open_options(options));
    return Model(std::make_shared<ModelParts>(*opened, engine, options.upright));
  });
}

std::vector<std::vector<Prediction>> Model::classify(std::span<const ImageView> images, int top_k) const {
  require_top_k(top_k);
  const std::shared_ptr<ModelParts> own = parts();
  return called([&] {
    const RowsOfFloats rows = own->rows(PredictTask::kClassify, images);
    std::vector<std::vector<Prediction>> given;
    for (int64_t i = 0; i < rows.count; ++i) given.push_back(own->predictions(rows[i], top_k));
    return given;
  });
}

std::vector<Prediction> Model::classify(const ImageView& image, int top_k) const {
  return std::move(classify(std::span(&image, 1), top_k)[0]);
}

RowsOfFloats Model::logits(std::span<const ImageView> images) const {
  return called([&] { return parts()->rows(PredictTask::kLogits, images); });
}

std::vector<float> Model::logits(const ImageView& image) const {
  return std::move(logits(std::span(&image, 1)).values);
}

std::vector<float> Model::logits(std::span<const float> tensors) const {
  const std::shared_ptr<ModelParts> own = parts();
  own->require(PredictTask::kLogits);
  const size_t elems = own->predictor.image_elems();
  VT_REQUIRE(tensors.data() != nullptr && !tensors.empty() && tensors.size() % elems == 0, ErrorKind::kUsage,
             "%zu floats given; an image has %zu", tensors.data() ? tensors.size() : size_t{0}, elems);
  return called([&] { return own->rows(PredictTask::kLogits, tensors, 0, tensors.size() / elems); });
}

RowsOfFloats Model::embed(std::span<const ImageView> images) const {
  return called([&] { return parts()->rows(PredictTask::kEmbed, images); });
}

std::vector<float> Model::embed(const ImageView& image) const {
  return std::move(embed(std::span(&image, 1)).values);
}

std::vector<std::vector<AttentionMap>> Model::attention(std::span<const ImageView> images,
                                                        const AttentionOptions& options) const {
  return called([&] { return parts()->maps(images, options); });
}

std::vector<AttentionMap> Model::attention(const ImageView& image, const AttentionOptions& options) const {
  return std::move(attention(std::span(&image, 1), options)[0]);
}

std::vector<float> Model::preprocess(const ImageView& image) const {
  return called([&] { return parts()->inputs({&image, 1}, 0, 1); });
}

void Model::classify_files(std::span<const std::string> paths, const FileCallback& callback,
                           int top_k) const {
  require_top_k(top_k);
  const std::shared_ptr<ModelParts> own = parts();
  stream(*own, PredictTask::kClassify, paths, callback,
         [&](FileResult& result) { result.predictions = own->predictions(result.values, top_k); });
}

void Model::logits_files(std::span<const std::string> paths, const FileCallback& callback) const {
  stream(*parts(), PredictTask::kLogits, paths, callback);
}

void Model::embed_files(std::span<const std::string> paths, const FileCallback& callback) const {
  stream(*parts(), PredictTask::kEmbed, paths, callback);
}

void Model::attention_files(std::span<const std::string> paths, const AttentionCallback& callback,
                            const AttentionOptions& options) const {
  const std::shared_ptr<ModelParts> own = parts();
  CallerThrow caller;
  called([&] { own->stream_maps(paths, options, kept_by(caller, callback)); }, caller);
}

int64_t Model::classes() const {
  return parts()->card().config.classes;
}
int64_t Model::channels() const {
  return parts()->card().config.channels;
}
int64_t Model::image_height() const {
  return parts()->card().config.image_height;
}
int64_t Model::image_width() const {
  return parts()->card().config.image_width;
}
int64_t Model::feature_width() const {
  return parts()->card().config.width;
}
int64_t Model::batch() const {
  return parts()->predictor.batch();
}
const std::vector<std::string>& Model::labels() const {
  return parts()->predictor.labels();
}

}  // namespace vitrail
