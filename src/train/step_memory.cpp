// Counts what a planned step holds: its programs, and their bytes by memory and category.
#include <algorithm>

#include "plan/node_times.h"
#include "train/step_plan.h"

namespace vitrail {

std::vector<PipelineTurn> StepPlan::turns() const {
  return pipelined ? pipeline_turns(config.stages.shape(config.distribution.mesh))
                   : std::vector<PipelineTurn>();
}

double StepPlan::busy_share() const {
  return pipelined ? 1 - bubble_of(turns(), config.distribution.mesh.size(Axis::kPipeline)) : 1;
}

double StepPlan::update_seconds(int64_t accumulation, const DeviceFile& device) const {
  const double runs = pipelined ? 1 : static_cast<double>(accumulation);
  return (runs * run_seconds(micro, device) + run_seconds(update, device)) / busy_share();
}

std::vector<const ExecutionPlan*> StepPlan::programs() const {
  std::vector<const ExecutionPlan*> list = {&micro, &update, &eval};
  if (last_micro) list.push_back(&*last_micro);
  if (eval_average) list.push_back(&*eval_average);
  if (refresh) list.push_back(&*refresh);
  if (offload && offload->gather) list.push_back(&*offload->gather);
  return list;
}

size_t StepPlan::transient_bytes() const {
  size_t most = 0;
  for (const ExecutionPlan* plan : programs()) most = std::max(most, plan->memory.transient_bytes);
  return most;
}

size_t StepPlan::image_staging_bytes() const {
  const size_t average = eval_average ? eval_average->memory.staging_bytes : 0;
  return std::max({micro.memory.staging_bytes, eval.memory.staging_bytes, average});
}

size_t StepPlan::staging_bytes() const {
  return image_staging_bytes() + prefetch_bytes + update.memory.staging_bytes +
         (refresh ? refresh->memory.staging_bytes : 0);
}

size_t StepPlan::host_bytes() const {
  return offload ? layout->host_bytes() + offload->transient_bytes() : 0;
}

size_t StepPlan::page_locked_bytes() const {
  return layout->bytes(Home::kLocked);
}

// What lies on the host counts with the device's memory where both are one.
size_t StepPlan::shared_host_bytes() const {
  return micro.device.shares_host_memory ? host_bytes() : 0;
}

size_t StepPlan::peak_bytes() const {
  return layout->bytes() + staging_bytes() + transient_bytes() + shared_host_bytes();
}

NamedBytes StepPlan::host_rows() const {
  NamedBytes rows;
  const auto add = [&](const char* name, size_t bytes) {
    if (bytes > 0) rows.emplace_back(name, bytes);
  };
  if (!offload) return rows;
  add("master weights", layout->bytes(Home::kHost, Category::kParameters));
  add("parameters, page-locked", layout->bytes(Home::kLocked, Category::kParameters));
  add("optimizer state and averages", layout->host_bytes(Category::kOptimizer));
  add("staging, page-locked", layout->host_bytes(Category::kStaging));
  add("scratch of updates", offload->transient_bytes());
  return rows;
}

size_t StepPlan::lower_bound_bytes() const {
  size_t most = 0;
  for (const ExecutionPlan* plan : programs()) most = std::max(most, plan->memory.lower_bound_bytes);
  return layout->bytes() + staging_bytes() + most + shared_host_bytes();
}

std::array<size_t, kCategoryCount> StepPlan::by_category() const {
  const std::vector<const ExecutionPlan*> list = programs();
  const ExecutionPlan& largest =
      **std::max_element(list.begin(), list.end(), [](const ExecutionPlan* a, const ExecutionPlan* b) {
        return a->memory.lower_bound_bytes < b->memory.lower_bound_bytes;
      });
  std::array<size_t, kCategoryCount> bytes = largest.memory.alive;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes[c] += layout->bytes(static_cast<Category>(c));
  bytes[static_cast<size_t>(Category::kStaging)] += staging_bytes();
  if (shared_host_bytes() == 0) return bytes;
  for (size_t c = 0; c < kCategoryCount; ++c) bytes[c] += layout->host_bytes(static_cast<Category>(c));
  bytes[static_cast<size_t>(Category::kTransient)] += offload->transient_bytes();
  return bytes;
}

NamedBytes StepPlan::memory_rows(const NamedBytes& beside) const {
  NamedBytes rows = vitrail::memory_rows(by_category(), peak_bytes());
  rows.insert(rows.end(), beside.begin(), beside.end());
  return rows;
}

}  // namespace vitrail
