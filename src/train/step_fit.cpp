// Refuses a step that does not fit into memory, and names settings that would.
#include <algorithm>

#include "telemetry/format.h"
#include "train/step_plan.h"

namespace vitrail {

namespace {

// The images of a micro-batch that one rank computes, the largest share.
int64_t rank_rows(int64_t micro_batch, const StepConfig& config) {
  const int64_t dp = config.distribution.mesh.size(Axis::kData);
  return (micro_batch + dp - 1) / dp;
}

size_t peak_of(const StepConfig& config, const StepPlan& like) {
  return plan_step(config, *like.micro.backend, like.micro.device).peak_bytes();
}

// Returns the largest micro-batch that divides the present one and fits; 0: none does.
int64_t fitting_batch(const StepPlan& plan, const Beside& beside, size_t available, int64_t unit) {
  unit *= plan.config.distribution.mesh.size(Axis::kData);
  for (int64_t parts = 2; parts <= plan.config.micro_batch; ++parts) {
    if (plan.config.micro_batch % (parts * unit) != 0) continue;
    StepConfig config = plan.config;
    config.micro_batch /= parts;
    config.eval_batch = std::min(config.eval_batch, config.micro_batch);
    const int64_t rows = rank_rows(config.micro_batch, config);
    if (peak_of(config, plan) + sum_of(beside(rows)) <= available) return rows;
  }
  return 0;
}

std::string advice(const StepPlan& plan, const Beside& beside, size_t available, int64_t batch_unit) {
  const size_t other = sum_of(beside(rank_rows(plan.config.micro_batch, plan.config)));
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  const auto try_out = [&](const StepConfig& config, const std::string& setting) {
    const size_t bytes = peak_of(config, plan);
    if (bytes + other <= available) add(setting + " needs " + format_bytes(bytes + other));
  };
  const StepConfig& own = plan.config;
  for (const auto& [name, bytes] : beside(rank_rows(own.micro_batch, own)))
    if (name == kDecodingRow && plan.peak_bytes() + other - bytes < available)
      add("fewer loader.workers: each holds an image while it decodes it");
  if (own.images == ImageForm::kStored) {
    StepConfig config = own;
    config.images = ImageForm::kPixels, config.stored_images = 0;
    try_out(config, "loader.on_device=images");
  }
  for (Recompute level : {Recompute::kMlp, Recompute::kBlock}) {
    StepConfig config = own;
    config.recompute.level = level;
    if (level > own.recompute.level) try_out(config, strf("train.recompute=%s", enum_name(level)));
  }
  if (own.eval_batch > own.micro_batch) {
    StepConfig config = own;
    config.eval_batch = own.micro_batch;
    try_out(config, strf("train.eval_batch=%lld", static_cast<long long>(own.micro_batch)));
  }
  if (const int64_t batch = fitting_batch(plan, beside, available, batch_unit)) {
    add(strf("train.micro_batch=%lld with %lld times the accumulation fits", static_cast<long long>(batch),
             static_cast<long long>(rank_rows(own.micro_batch, own) / batch)));
    if (own.eval_batch != own.micro_batch && rank_rows(own.eval_batch, own) > batch)
      text += strf(" when train.eval_batch=%lld too", static_cast<long long>(batch));
  }
  if (text.empty() && own.images == ImageForm::kStored)
    return "loader.on_device=images and a smaller step: beside the dataset not even one image fits";
  return text.empty() ? "a smaller model or image: not even one image fits" : text;
}

}  // namespace

void require_step_fits(const StepPlan& plan, const Beside& beside, const FreeMemory& available,
                       int64_t batch_unit) {
  const NamedBytes held = beside(rank_rows(plan.config.micro_batch, plan.config));
  const size_t needed = plan.peak_bytes() + sum_of(held);
  if (available.bytes == 0 || needed <= available.bytes) return;
  throw Error(ErrorKind::kMemory,
              strf("a step of %lld images needs %s; %s is %s\n%s",
                   static_cast<long long>(rank_rows(plan.config.micro_batch, plan.config)),
                   format_bytes(needed).c_str(), format_bytes(available.bytes).c_str(),
                   available.where.c_str(), memory_table(plan.memory_rows(held), needed, 2).c_str()),
              advice(plan, beside, available.bytes, batch_unit));
}

}  // namespace vitrail
