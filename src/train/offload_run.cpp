#include "train/offload_run.h"

#include <algorithm>

namespace vitrail {

OffloadRun::OffloadRun(const OffloadPlan& plan, const PersistentStore& store, RankContext& rank)
    : plan_(plan),
      store_(store),
      rank_(rank),
      own_(rank.hardware->shares_host_memory() ? nullptr : std::make_unique<RankContext>(plan.device)),
      host_(own_ ? *own_ : rank),
      arena_(plan.transient_bytes(), Category::kTransient, host_.memory()),
      update_(programs_of(&OffloadPlan::Bucket::update)),
      refresh_(programs_of(&OffloadPlan::Bucket::refresh)),
      average_(programs_of(&OffloadPlan::Bucket::average)),
      down_(rank.hardware->create_stream()),
      up_(rank.hardware->create_stream()),
      ready_(rank.hardware->create_event()) {
  for (auto& event : arrived_) event = rank.hardware->create_event();
  for (auto& event : sent_) event = rank.hardware->create_event();
}

OffloadRun::Programs OffloadRun::programs_of(std::optional<ExecutionPlan> OffloadPlan::Bucket::*which) {
  Programs programs;
  for (const OffloadPlan::Bucket& bucket : plan_.buckets)
    programs.push_back(bucket.*which ? std::make_unique<Executor>(*(bucket.*which), store_, host_, &arena_)
                                     : nullptr);
  return programs;
}

void OffloadRun::fetch(size_t bucket) {
  const TensorView place = store_.view(OffloadPlan::gradients_at(bucket));
  for (const OffloadPlan::Span& span : plan_.buckets[bucket].gradients)
    down_->download(static_cast<std::byte*>(place.data()) + span.host, store_.view(span.first).data(),
                    span.bytes);
  down_->record(*arrived_[bucket % OffloadPlan::kPlaces]);
}

void OffloadRun::send(size_t bucket) {
  const TensorView place = store_.view(OffloadPlan::copies_at(bucket));
  for (const OffloadPlan::Span& span : plan_.buckets[bucket].copies)
    up_->upload(store_.view(span.first).data(), static_cast<const std::byte*>(place.data()) + span.host,
                span.bytes);
  up_->record(*sent_[bucket % OffloadPlan::kPlaces]);
}

// While the host works on a bucket, the gradients of the next come down and the copies of the last go up. A
// staging place is used again when its bytes have gone.
void OffloadRun::run(const Programs& programs, bool gradients) {
  Stream& device = rank_.hardware->stream();
  device.record(*ready_);
  if (!plan_.sends) ready_->synchronize();  // programs that read the copies where they are written
  down_->wait(*ready_);
  up_->wait(*ready_);
  const size_t fetched = gradients ? plan_.trained : 0;
  for (size_t i = 0; i < std::min(fetched, OffloadPlan::kPlaces); ++i) fetch(i);
  for (size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i]) continue;
    if (i < fetched) arrived_[i % OffloadPlan::kPlaces]->synchronize();
    sent_[i % OffloadPlan::kPlaces]->synchronize();
    programs[i]->run();
    if (i + OffloadPlan::kPlaces < fetched) fetch(i + OffloadPlan::kPlaces);
    if (plan_.sends) send(i);
  }
  for (const auto& event : sent_) device.wait(*event);
}

void OffloadRun::update(std::span<const double> control, std::span<const double> hyper) {
  const PersistentLayout& layout = store_.layout();
  store_.write(layout.at(kHostControl), std::as_bytes(control));
  if (layout.has(kHostHyper)) store_.write(layout.at(kHostHyper), std::as_bytes(hyper));
  run(update_, true);
  skip();
}

void OffloadRun::skip() {
  for (const OffloadPlan::Bucket& bucket : plan_.buckets)
    for (const OffloadPlan::Span& span : bucket.gradients)
      rank_.hardware->clear(store_.view(span.first).data(), span.bytes);
}

void OffloadRun::load(bool average) {
  run(average ? average_ : refresh_, false);
}

}  // namespace vitrail
