#include "api/rank_predict.h"

#include <utility>

#include "base/stop.h"
#include "plan/devices.h"

namespace vitrail {

PredictRank::PredictRank(const PredictWork& work, const InferenceRank& rank,
                         std::function<void(const std::string& line)> on_line)
    : work_(work), rank_(rank), on_line_(std::move(on_line)), exchange_(rank.partners()) {
  EngineOptions engine = rank.on_rank(work.engine);
  StreamSettings images = stream_settings(work.model.card(), engine, work.upright);
  images.threads_option = work.threads_option;
  engine.beside = ImageStream::memory(work.paths, images);
  // The first images are decoded while the parameters are read.
  engine.when_it_fits = [&] { stream_ = std::make_unique<ImageStream>(work.paths, images); };
  predictor_ = std::make_unique<Predictor>(work.model, engine, std::vector{work.task});
  if (!predictor_->engine().cache_note().empty()) on_line_(predictor_->engine().cache_note());
  on_line_("running on " + device_text(plan()));
  start_seconds_ = seconds_since(work.start);
}

PredictTimes PredictRank::run(const PredictHooks& hooks) {
  const Clock::time_point start = Clock::now();
  for (size_t done = 0; !stream_->done(); done += next_batch(hooks))
    SignalGuard::check(rank_.team().any(hooks.stop()), done, work_.paths.size());
  return {.images = work_.paths.size(),
          .batch = predictor_->batch(),
          .threads = image_threads(predictor_->engine().options()),
          .seconds = seconds_since(start),
          .start = start_seconds_,
          .compute = predictor_->compute_seconds(),
          .wait = stream_->take_wait_seconds(),
          .decode = stream_->decode_seconds()};
}

size_t PredictRank::next_batch(const PredictHooks& hooks) {
  const ImageBatch batch = stream_->next();
  BatchRows mine{predictor_->run(work_.task, batch, work_.paths, Remainder::kPadded, rows_), batch.notes};
  const BatchRows all = exchange_.all(std::move(mine));
  for (const std::string& note : all.notes) on_line_(note);
  not_turned_ += all.notes.size();
  if (rank_.team().leads())
    for (const ImageRow& row : all.rows) hooks.on_row(row);
  hooks.on_batch(batch.of_all);
  return batch.of_all;
}

}  // namespace vitrail
