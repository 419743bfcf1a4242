#include "api/rank_eval.h"

#include <cmath>
#include <utility>

#include "api/classify.h"
#include "api/precision.h"
#include "base/text.h"
#include "plan/devices.h"
#include "telemetry/format.h"
#include "train/group_relay.h"

namespace vitrail {

namespace {

constexpr int64_t kChunk = 2;  // images a decoding thread takes at a time

// Wraps the model as the callback of evaluate(); `logits` must live as long as the callback.
Forward forward_of(Predictor& predictor, std::vector<float>& logits) {
  return [&](std::span<const float> images, int64_t count) -> std::span<const float> {
    logits = predictor.run(PredictTask::kLogits, images, count, Remainder::kPadded);
    require_finite(logits, "logits");
    return logits;
  };
}

}  // namespace

EvalRank::EvalRank(const EvalWork& work, const InferenceRank& rank, EvalNotes notes)
    : work_(work),
      rank_(rank),
      notes_(std::move(notes)),
      engine_(rank.on_rank(work.engine)),
      loader_(loader_settings()),
      exchange_(rank.partners()) {
  loader_.on_bad = [this](const BadSample& bad) {
    skipped_.push_back("skipped " + shown(bad.name) + ": " + bad.reason);
    if (rank_.team().alone()) report_skipped();
  };
  engine_.beside = {Loader::staging_bytes(loader_), decoder_bytes(work.data),
                    loader_.receives ? 0 : loader_.loader.workers, "--set loader.workers="};
  model_ = std::make_unique<Predictor>(work.model, engine_, std::vector{PredictTask::kLogits});
  if (!model_->engine().cache_note().empty()) notes_.on_detail(model_->engine().cache_note());
  other_ = second_model();
}

LoaderSettings EvalRank::loader_settings() const {
  const ModelCard& card = work_.model.card();
  LoaderSettings settings;
  settings.loader = work_.loader;
  // One of the ranks with the same images decodes, with the threads of all.
  const Mesh& mesh = engine_.distribution.mesh;
  settings.relay = group_relay(rank_.partners());
  settings.receives = receives_images(mesh);
  if (settings.loader.workers == 0) settings.loader.workers = image_threads(engine_) * mesh.size(kSameImages);
  settings.take(share_of(engine_.batch, mesh, 1, "a batch"));
  if (work_.prefetch_by_batch)
    settings.loader.prefetch = batches_to_prefetch(settings.micro_batch, settings.loader.workers);
  settings.chunk = kChunk;
  settings.preprocess = card.preprocess;
  settings.channels = card.config.channels;
  settings.classes = card.config.classes;
  return settings;
}

std::unique_ptr<Predictor> EvalRank::second_model() const {
  if (work_.against.empty()) return nullptr;
  if (work_.data.multi_label())
    throw Error(ErrorKind::kUsage, "--against compares the first class of an image, these have several",
                "two runs of eval, one with each --dtype");
  EngineOptions settings = engine_;
  set_precision(work_.against, work_.device, settings, settings.dash);
  return std::make_unique<Predictor>(work_.model, settings, std::vector{PredictTask::kLogits});
}

// Chooses the loss that fits the model's scores; data with several labels an image allows one only.
LossKind EvalRank::loss() const {
  const bool alone = work_.model.card().scores == ScoreKind::kSigmoid;
  if (!alone && !work_.data.multi_label()) return LossKind::kSoftmax;
  notes_.on_note(alone ? "the model scores each class on its own: the loss is bce_mean"
                       : "the data gives several labels an image: the loss is bce_mean");
  return LossKind::kSigmoidMean;
}

EvalResult EvalRank::run(const std::function<void(int64_t done)>& on_progress,
                         const std::function<bool()>& stop) {
  const std::unique_ptr<Loader> loader = make_eval_loader(work_.data, loader_);
  const Team team = rank_.team();
  std::vector<float> logits, other_logits;
  EvalOptions how{.loss = loss(),
                  .progress =
                      [&](int64_t done) {
                        if (!team.alone()) report_skipped();
                        on_progress(done);
                      },
                  .stop = [&] { return team.any(stop()); },
                  .against = other_ ? forward_of(*other_, other_logits) : Forward()};
  if (!team.alone())
    how.gather = [&](const EvalRows& mine) {
      return rows_of_all(team, cut_points(engine_.batch, engine_.distribution.mesh.size(Axis::kData)), mine);
    };
  EvalResult result = evaluate(work_.data, *loader, forward_of(*model_, logits), how);
  if (result.count == 0)
    throw Error(ErrorKind::kData,
                strf("none of %s could be read: there is no result",
                     format_count(work_.data.size(), "image").c_str()),
                "vitrail data check lists what is wrong with them");
  notes_.on_detail(strf(
      "%s images in %s, of which %s waiting for them; decoding beside it %s of processor time",
      format_integer(result.count).c_str(), format_seconds(result.seconds).c_str(),
      format_seconds(loader->take_wait_seconds()).c_str(), format_seconds(loader->work_seconds()).c_str()));
  return result;
}

// Tells of the images that ranks could not read, in the order of the data. A loader knows of its own rank's
// alone, so whether they are too many is counted here, too.
void EvalRank::report_skipped() {
  BatchRows mine;
  mine.notes = std::exchange(skipped_, {});
  const std::vector<std::string> all = exchange_.all(std::move(mine)).notes;
  for (const std::string& text : all) notes_.on_note(text);
  bad_ += static_cast<double>(all.size());
  const double share = loader_.loader.max_bad_fraction;
  if (rank_.team().alone() || bad_ <= std::ceil(share * static_cast<double>(work_.data.size()))) return;
  throw Error(ErrorKind::kData,
              strf("%.0f samples could not be read; the last: %s", bad_, all.back().c_str()),
              strf("loader.max_bad_fraction, now %g, says how many may be skipped", share));
}

}  // namespace vitrail
