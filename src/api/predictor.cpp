#include "api/predictor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/classify.h"
#include "base/text.h"
#include "base/timing.h"
#include "data/preprocess.h"
#include "io/cards/imagenet_names.h"
#include "plan/devices.h"
#include "telemetry/format.h"
#include "train/group_relay.h"
#include "train/mesh_config.h"

namespace vitrail {

namespace {

constexpr int64_t kBatchStep = 4;  // factor between the batch sizes that engines are made for: 1, 4, 16...

// Returns the options with arenas large enough for every task's largest batch, so that all of them are
// planned before anything is allocated.
EngineOptions with_room(EngineOptions options, const ModelCard& card, const std::vector<PredictTask>& tasks) {
  for (size_t i = 1; i < tasks.size(); ++i) {
    const MemoryPlan memory = plan_inference(card.config, options_for(tasks[i], card, options)).memory;
    options.arena_bytes = std::max(options.arena_bytes, memory.transient_bytes);
    options.staging_bytes = std::max(options.staging_bytes, memory.staging_bytes);
  }
  return options_for(tasks.at(0), card, options);
}

// Returns the smallest size that holds `count` images, or the largest there is.
int64_t batch_size_for(int64_t count, int64_t most) {
  int64_t size = 1;
  while (size < count && size < most) size *= kBatchStep;
  return std::min(size, most);
}

const char* raw_output(PredictTask task) {
  return task == PredictTask::kEmbed ? "features" : "logits";
}

}  // namespace

std::vector<PredictTask> tasks_of(const ModelCard& card) {
  if (card.config.classes == 0) return {PredictTask::kEmbed};
  return {PredictTask::kClassify, PredictTask::kLogits, PredictTask::kEmbed};
}

void require_task(PredictTask task, const ModelCard& card, const char* dash) {
  if (card.config.classes == 0 && task != PredictTask::kEmbed)
    throw Error(ErrorKind::kData, "this model has no classes", strf("%sembed gives its features", dash));
}

EngineOptions options_for(PredictTask task, const ModelCard& card, EngineOptions options) {
  options.features = task == PredictTask::kEmbed;
  options.probabilities = task == PredictTask::kClassify && card.scores == ScoreKind::kSoftmax;
  return options;
}

int image_threads(const EngineOptions& options) {
  return processor_threads(options.threads, options.isa);
}

StreamSettings stream_settings(const ModelCard& card, const EngineOptions& options, bool upright) {
  StreamSettings settings{card.preprocess, card.config.channels, options.batch, image_threads(options),
                          upright};
  const Mesh& mesh = options.distribution.mesh;
  settings.share = share_of(options.batch, mesh, 1, "a batch");
  // One of the ranks with the same images decodes, with the threads of all.
  settings.relay = group_relay(options.rank ? options.rank->ranks : nullptr);
  settings.receives = settings.relay && receives_images(mesh);
  if (settings.relay) settings.threads *= mesh.size(kSameImages);
  return settings;
}

Predictor::Predictor(const OpenedModel& model, EngineOptions options, std::vector<PredictTask> tasks)
    : card_(model.card()),
      labels_(display_labels(card_)),
      loaded_with_(tasks.at(0)),
      base_(model, with_room(std::move(options), card_, tasks)) {}

// A checked engine runs every batch at its full size, padded: its reference parameters are not shared.
Engine& Predictor::engine_for(PredictTask task, int64_t count, Remainder remainder) {
  const EngineOptions& own = base_.options();
  const bool largest = own.check_reference || own.distribution.active() || remainder == Remainder::kPadded;
  const int64_t size = largest ? own.batch : batch_size_for(count, own.batch);
  if (task == loaded_with_ && size == own.batch) return base_;
  const auto found = others_.find({task, size});
  if (found != others_.end()) return found->second;
  EngineOptions options = options_for(task, card_, own);
  options.batch = size;
  return others_.emplace(std::pair(task, size), base_.sharing(options)).first->second;
}

std::vector<float> Predictor::run(PredictTask task, std::span<const float> pixels, int64_t count,
                                  Remainder remainder, std::vector<float>* raw) {
  const size_t elems = image_elems();
  VT_CHECK(pixels.size() == static_cast<size_t>(count) * elems, "%zu floats are no %lld images",
           pixels.size(), static_cast<long long>(count));
  std::vector<float> rows;
  if (raw) raw->clear();
  const std::lock_guard turn(mutex_);
  for (int64_t done = 0; done < count;) {
    Engine& engine = engine_for(task, count - done, remainder);
    const int64_t now = std::min(count - done, engine.batch());
    const auto start = Clock::now();
    engine.run(pixels.subspan(static_cast<size_t>(done) * elems, static_cast<size_t>(now) * elems), now);
    compute_seconds_ += seconds_since(start);
    std::vector<float> given = engine.output(raw_output(task));
    if (raw) raw->insert(raw->end(), given.begin(), given.end());
    if (task == PredictTask::kClassify) given = class_scores(engine, card_.scores);
    rows.insert(rows.end(), given.begin(), given.end());
    done += now;
  }
  return rows;
}

void Predictor::explain(std::span<const float> pixels, const AttentionRequest& request,
                        const std::function<void(const Engine&)>& each) {
  const EngineOptions& own = base_.options();
  const EngineOptions wanted = options_for(request, options_for(tasks_of(card_).front(), card_, own));
  const bool same = own.batch == 1 && own.attention && own.attention_block == wanted.attention_block &&
                    loaded_with_ == tasks_of(card_).front();
  const std::lock_guard turn(mutex_);
  std::optional<Engine> other;
  if (!same) other.emplace(base_.sharing(wanted));
  Engine& engine = same ? base_ : *other;
  for (; !pixels.empty(); pixels = pixels.subspan(image_elems())) {
    engine.run(pixels.first(image_elems()), 1);
    each(engine);
  }
}

Explanation Predictor::explain(const Image& image, const AttentionRequest& request) {
  std::vector<float> input(image_elems());
  preprocess(image, card_.preprocess, input);
  Explanation given;
  explain(input, request, [&](const Engine& engine) {
    given.maps = attention_maps(engine, request);
    if (card_.config.classes == 0) return;
    given.logits = engine.output("logits");
    given.scores = class_scores(engine, card_.scores);
  });
  return given;
}

std::vector<ImageRow> Predictor::run(PredictTask task, const ImageBatch& batch,
                                     const std::vector<std::string>& paths, Remainder remainder,
                                     std::vector<float>& rows) {
  std::vector<float> raw;
  // Ranks that share a model run together, whatever each of them could read.
  const bool runs = batch.count > 0 && (batch.readable() > 0 || base_.options().distribution.active());
  if (runs) rows = run(task, batch.pixels, static_cast<int64_t>(batch.count), remainder, &raw);
  const size_t width = runs ? rows.size() / batch.count : 0;
  std::vector<ImageRow> given;
  auto failure = batch.failures.begin();
  for (size_t i = 0; i < batch.count; ++i) {
    ImageRow& row = given.emplace_back(ImageRow{batch.first + i, {}, std::nullopt});
    if (failure != batch.failures.end() && failure->first == batch.first + i) {
      row.error = (failure++)->second;
      continue;
    }
    try {
      with_context(shown(paths[row.index]),
                   [&] { require_finite(std::span(raw).subspan(i * width, width), raw_output(task)); });
      row.values = std::span(rows).subspan(i * width, width);
    } catch (const Error& error) {
      row.error = error;
    }
  }
  return given;
}

nlohmann::ordered_json to_json(const PredictTimes& t) {
  return {{"images", t.images},           {"batch", t.batch},       {"threads", t.threads},
          {"img_per_s", t.rate()},        {"seconds", t.seconds},   {"start_seconds", t.start},
          {"compute_seconds", t.compute}, {"wait_seconds", t.wait}, {"decode_seconds", t.decode}};
}

std::string to_text(const PredictTimes& t) {
  return strf(
      "%s in %s, %s images/s, after %s to load the model: computing %s, waiting for images "
      "%s; decoding beside it %s of processor time",
      format_count(static_cast<int64_t>(t.images), "image").c_str(), format_seconds(t.seconds).c_str(),
      format_si(t.rate()).c_str(), format_seconds(t.start).c_str(), format_seconds(t.compute).c_str(),
      format_seconds(t.wait).c_str(), format_seconds(t.decode).c_str());
}

}  // namespace vitrail
