#include "train/micro_feed.h"

#include "train/teacher.h"
#include "train/train_step.h"

namespace vitrail {

double MicroFeed::run(int64_t step, int64_t micro) {
  const Batch& batch = loader_->next();
  weights_.resize(batch.weights.size());
  for (size_t i = 0; i < weights_.size(); ++i)
    weights_[i] = batch.weights[i] / static_cast<float>(config_.batch);
  MicroBatch step_batch{.pictures = batch.pictures,
                        .targets = batch.targets,
                        .weights = weights_,
                        .teacher = {},
                        .seed = config_.seed,
                        .step = step,
                        .position = micro * config_.micro_batch,
                        .pixels = batch.pixels,
                        .recipes = batch.recipes,
                        .index = batch.index};
  if (teacher_) step_batch.teacher = teacher_->targets(batch.pictures);
  step_.run_micro(step_batch);
  send_ahead();  // before the losses are waited for
  double loss = 0;
  const std::span<const float> losses = step_.losses();
  for (size_t i = 0; i < losses.size(); ++i)
    if (weights_[i] > 0) loss += static_cast<double>(losses[i]) * static_cast<double>(weights_[i]);
  return loss;
}

// Nothing waits for a batch that is not made yet: it is sent when its turn comes. The loader keeps the batch
// until the one after it is asked for, and by then this one's losses were read: it has landed.
void MicroFeed::send_ahead() {
  if (!step_.takes_ahead()) return;
  if (const std::optional<Batch> next = loader_->peek())
    step_.send_ahead(next->index,
                     next->pixels.empty() ? std::as_bytes(next->pictures) : std::as_bytes(next->pixels));
}

// The loader writes over what may still be on its way.
void MicroFeed::seek(int64_t step) {
  step_.forget_ahead();
  loader_->seek(step);
}

}  // namespace vitrail
