#include "train/offload_time.h"

namespace vitrail {

namespace {
double link_seconds(const std::vector<OffloadPlan::Span>& spans) {
  double bytes = 0;
  for (const OffloadPlan::Span& span : spans) bytes += static_cast<double>(span.bytes);
  return bytes / kHostLinkBytes;
}
}  // namespace

OffloadTimes offload_times(const OffloadPlan& offload) {
  OffloadTimes times;
  for (size_t i = 0; i < offload.trained; ++i) {
    const OffloadPlan::Bucket& bucket = offload.buckets[i];
    times.down += link_seconds(bucket.gradients);
    times.up += link_seconds(bucket.copies);
    times.update += bucket.update->program.cost().bytes / kHostUpdateBytes;
  }
  return times;
}

double host_seconds(const StepPlan& step, int64_t micro_batches, double update_s) {
  const double update = step.offload ? offload_times(*step.offload).longest() : 0;
  const auto bytes = static_cast<double>(step.layout->bytes(Home::kLocked, Category::kParameters));
  const double uploads = 2 * static_cast<double>(micro_batches) * bytes / kHostLinkBytes;
  return update + std::max(0.0, uploads - update_s - update);
}

}  // namespace vitrail
