#include "train/micro_feed.h"

#include <algorithm>
#include <numeric>

#include "data/image_form.h"
#include "runtime/transfer.h"
#include "train/teacher.h"
#include "train/train_step.h"

namespace vitrail {

void MicroFeed::run_update(int64_t step) {
  if (!step_.plan().pipelined) {
    for (int64_t micro = 0; micro < config_.accumulation; ++micro) run(step, micro);
    return;
  }
  step_.run_pipeline([&](int64_t micro, bool data) {
    MicroBatch batch = batch_at(step, micro);
    if (data) take(loader_->next(), batch);
    return batch;
  });
}

MicroBatch MicroFeed::batch_at(int64_t step, int64_t micro) const {
  MicroBatch batch;
  batch.seed = config_.seed;
  batch.step = step;
  batch.position = micro * (config_.batch / config_.accumulation);
  batch.last = micro + 1 == config_.accumulation;
  return batch;
}

void MicroFeed::take(const Batch& batch, MicroBatch& target) {
  weights_.resize(batch.weights.size());
  for (size_t i = 0; i < weights_.size(); ++i)
    weights_[i] = batch.weights[i] / static_cast<float>(config_.batch);
  images_ += std::ranges::count_if(weights_, [](float weight) { return weight > 0; });
  target.images = batch.images;
  target.targets = batch.targets;
  target.weights = weights_;
  target.pixels = batch.pixels;
  target.recipes = batch.recipes;
  target.index = batch.index;
}

void MicroFeed::run(int64_t step, int64_t micro) {
  step_.wait_for_inputs();  // the loader is about to write where the last micro-batch was
  const Batch& batch = loader_->next();
  MicroBatch step_batch = batch_at(step, micro);
  take(batch, step_batch);
  if (teacher_) step_batch.teacher = teacher_->targets(batch.images);
  if (show_) std::exchange(show_, nullptr)(step_batch);
  step_.run_micro(step_batch);
  prefetch_next();
}

// A batch that is not ready is not waited for: it is sent when its turn comes. The loader keeps the peeked
// batch until the one after it is requested; by then it was run and its inputs waited for, so its copy is
// complete.
void MicroFeed::prefetch_next() {
  if (!step_.prefetches()) return;
  if (const std::optional<Batch> next = loader_->peek())
    step_.prefetch(next->index,
                   next->pixels.empty() ? std::as_bytes(next->images) : std::as_bytes(next->pixels));
}

// Prefetched images are dropped first: the loader would overwrite bytes that are still being copied.
void MicroFeed::seek(int64_t step) {
  step_.wait_for_inputs();
  step_.drop_prefetched();
  loader_->seek(step);
}

std::string loading_text(const std::vector<double>& seconds) {
  std::string text = strf("loading training images took %.2f s of processor time",
                          std::accumulate(seconds.begin(), seconds.end(), 0.0));
  for (size_t rank = 0; seconds.size() > 1 && rank < seconds.size(); ++rank)
    text += strf("%s rank %zu %.2f", rank ? "," : ":", rank, seconds[rank]);
  return text;
}

void bring_images(const RunSetup& setup, const TrainStep& step) {
  const ImageForm form = setup.step.images;
  if (form == ImageForm::kFloats || !step.store().layout().has(kImageLevels))
    return;  // or another stage makes them
  const LoaderSettings settings = setup.loader_settings(Purpose::kTrain);
  const std::vector<float> levels = image_levels(settings);
  write_bytes(step.rank(), step.store().view(kImageLevels), std::as_bytes(std::span(levels)));
  if (form != ImageForm::kStored) return;
  const TensorView stored = step.store().view(kStoredPixels);
  read_stored_pixels(settings, *setup.data.train, [&](size_t offset, std::span<const uint8_t> pixels) {
    VT_CHECK(offset + pixels.size() <= stored.desc().bytes(), "%zu pixels for %s", offset + pixels.size(),
             to_string(stored.desc()).c_str());
    step.rank().hardware->upload(static_cast<std::byte*>(stored.data()) + offset, pixels.data(),
                                 pixels.size());
  });
}

}  // namespace vitrail
