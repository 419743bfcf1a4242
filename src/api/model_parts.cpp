#include "api/model_parts.h"

#include <algorithm>

#include "api/classify.h"
#include "api/explain.h"
#include "api/image_input.h"
#include "api/option_words.h"
#include "base/file.h"
#include "base/text.h"

namespace vitrail {

namespace {

constexpr int64_t kExplainedTogether = 16;  // images for which a program with attention maps is made once

template <typename Element>
void require_memory(std::span<Element> given, const char* what) {
  VT_REQUIRE(given.empty() || given.data() != nullptr, ErrorKind::kUsage,
             "expected %zu %s, found a null pointer", given.size(), what);
}

template <typename Result>
void require_callback(const std::function<bool(const Result&)>& callback) {
  VT_REQUIRE(callback != nullptr, ErrorKind::kUsage, "expected a callback, found none");
}

// Returns the error of a file in the words of the options that the model was loaded with.
std::optional<Error> public_error(const std::optional<Error>& error) {
  return error ? std::optional(in_words_of("ModelOptions", *error)) : std::nullopt;
}

std::vector<AttentionMap> public_maps(const Engine& engine, const AttentionRequest& request) {
  const VitConfig& config = engine.config();
  std::vector<AttentionMap> given;
  for (NamedMap& map : attention_maps(engine, request))
    given.push_back({std::move(map.name), config.grid_height(), config.grid_width(), std::move(map.map)});
  return given;
}

}  // namespace

ModelParts::ModelParts(const OpenedModel& opened, const EngineOptions& options, bool turn)
    : upright(turn), threads(image_threads(options)), predictor(opened, options, tasks_of(opened.card())) {}

void ModelParts::require(PredictTask task) const {
  require_task(task, card());
}

RowsOfFloats ModelParts::rows(PredictTask task, std::span<const ImageView> images) {
  require(task);
  require_memory(images, "images");
  RowsOfFloats given{std::ssize(images), 0, {}};
  const auto most = static_cast<size_t>(predictor.batch());
  for (size_t first = 0; first < images.size(); first += most) {
    const std::vector<float> now = rows(task, inputs(images, first, most), first, images.size());
    given.values.insert(given.values.end(), now.begin(), now.end());
  }
  given.width = given.count > 0 ? std::ssize(given.values) / given.count : 0;
  return given;
}

std::vector<float> ModelParts::rows(PredictTask task, std::span<const float> inputs, size_t first,
                                    size_t total) {
  const size_t count = inputs.size() / predictor.image_elems();
  std::vector<float> raw;
  std::vector<float> given =
      predictor.run(task, inputs, static_cast<int64_t>(count), Remainder::kSmaller, &raw);
  const size_t width = raw.size() / count;
  for (size_t i = 0; i < count; ++i)
    naming_image(first + i, total, [&] {
      require_finite(std::span(raw).subspan(i * width, width),
                     task == PredictTask::kEmbed ? "features" : "logits");
    });
  return given;
}

std::vector<std::vector<AttentionMap>> ModelParts::maps(std::span<const ImageView> images,
                                                        const AttentionOptions& options) {
  require_memory(images, "images");
  const AttentionRequest request = attention_request(options.method, options.layer, card().config, "layer");
  std::vector<std::vector<AttentionMap>> given;
  for (size_t first = 0; first < images.size(); first += kExplainedTogether)
    predictor.explain(inputs(images, first, kExplainedTogether), request, [&](const Engine& engine) {
      naming_image(given.size(), images.size(), [&] { given.push_back(public_maps(engine, request)); });
    });
  return given;
}

std::vector<float> ModelParts::inputs(std::span<const ImageView> images, size_t first, size_t most) const {
  const size_t count = std::min(most, images.size() - first);
  return inputs_of(images, first, count, card(), upright, threads);
}

std::vector<Prediction> ModelParts::predictions(std::span<const float> probabilities, int top_k) const {
  std::vector<Prediction> given;
  for (TopClass& top : top_classes(probabilities, predictor.labels(), top_k))
    given.push_back({static_cast<int>(top.index), std::move(top.label), static_cast<float>(top.probability)});
  return given;
}

void ModelParts::stream(PredictTask task, std::span<const std::string> paths, const FileCallback& callback,
                        const std::function<void(FileResult&)>& complete) {
  require(task);
  require_callback(callback);
  batches(paths, predictor.batch(), [&](const ImageBatch& batch, const std::vector<std::string>& list) {
    std::vector<float> rows;
    for (ImageRow& row : predictor.run(task, batch, list, Remainder::kSmaller, rows)) {
      FileResult result{row.index, {}, row.values, public_error(row.error)};
      if (complete && !result.error) complete(result);
      if (!callback(result)) return false;
    }
    return true;
  });
}

void ModelParts::stream_maps(std::span<const std::string> paths, const AttentionOptions& options,
                             const AttentionCallback& callback) {
  require_callback(callback);
  const AttentionRequest request = attention_request(options.method, options.layer, card().config, "layer");
  batches(paths, kExplainedTogether, [&](const ImageBatch& batch, const std::vector<std::string>&) {
    // All of a batch are computed before any is reported: the callback may use the model.
    std::vector<FileAttention> results;
    predictor.explain(batch.pixels, request, [&](const Engine& engine) {
      FileAttention& result = results.emplace_back(FileAttention{batch.first + results.size(), {}, {}});
      try {
        result.maps = public_maps(engine, request);
      } catch (const Error& error) {
        result.error = public_error(error);
      }
    });
    for (const auto& [index, error] : batch.failures)
      results[index - batch.first] = {index, {}, public_error(error)};
    return std::ranges::all_of(results, callback);
  });
}

void ModelParts::batches(std::span<const std::string> paths, int64_t most, const BatchCall& each) const {
  require_memory(paths, "paths");
  const std::vector<std::string> list(paths.begin(), paths.end());
  for (size_t i = 0; i < list.size(); ++i) naming_image(i, list.size(), [&] { require_path(list[i]); });
  if (list.empty()) return;
  EngineOptions engine = predictor.engine().options();
  engine.batch = even_batch(std::ssize(list), most);
  ImageStream images(list, stream_settings(card(), engine, upright));
  while (!images.done())
    if (!each(images.next(), list)) return;
}

}  // namespace vitrail
