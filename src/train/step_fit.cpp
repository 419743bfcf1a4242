// Refusing a step that does not fit, with what would.
#include <algorithm>

#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/step_plan.h"

namespace vitrail {

namespace {

std::string memory_table(const StepPlan& plan, size_t other_bytes) {
  Table table({{"memory"}, {"bytes", Align::kRight}});
  const auto bytes = plan.by_category();
  for (size_t c = 0; c < kCategoryCount; ++c)
    if (bytes[c] > 0) table.row({to_string(static_cast<Category>(c)), format_bytes(bytes[c])});
  if (other_bytes > 0) table.row({"batches being loaded", format_bytes(other_bytes)});
  table.row({"in all", format_bytes(plan.peak_bytes() + other_bytes)});
  return table.text(2);
}

size_t peak_with(StepConfig config, const StepPlan& plan, int64_t micro_batch, RecomputeOptions recompute) {
  config.micro_batch = micro_batch;
  config.eval_batch = std::min(config.eval_batch, micro_batch);
  config.recompute = recompute;
  return plan_step(config, *plan.micro.backend, plan.micro.device).peak_bytes();
}

// The largest micro-batch that divides the present one and fits; 0: none does.
int64_t fitting_batch(const StepPlan& plan, RecomputeOptions recompute, size_t room) {
  for (int64_t parts = 2; parts <= plan.config.micro_batch; ++parts) {
    if (plan.config.micro_batch % parts != 0) continue;
    const int64_t batch = plan.config.micro_batch / parts;
    if (peak_with(plan.config, plan, batch, recompute) <= room) return batch;
  }
  return 0;
}

std::string advice(const StepPlan& plan, size_t room) {
  std::string text;
  const StepConfig& config = plan.config;
  for (Recompute level : {Recompute::kMlp, Recompute::kBlock}) {
    if (level <= config.recompute.level) continue;
    const size_t bytes = peak_with(config, plan, config.micro_batch, {level, config.recompute.every});
    if (bytes <= room)
      text += strf("%strain.recompute=%s needs %s", text.empty() ? "" : "; ", enum_name(level),
                   format_bytes(bytes).c_str());
  }
  if (const int64_t batch = fitting_batch(plan, config.recompute, room))
    text += strf("%strain.micro_batch=%lld with %lld times the accumulation fits", text.empty() ? "" : "; ",
                 static_cast<long long>(batch), static_cast<long long>(config.micro_batch / batch));
  return text.empty() ? "a smaller model or picture: not even one picture fits" : text;
}

}  // namespace

void require_step_fits(const StepPlan& plan, size_t other_bytes, size_t available_bytes) {
  if (available_bytes == 0 || plan.peak_bytes() + other_bytes <= available_bytes) return;
  const size_t room = available_bytes > other_bytes ? available_bytes - other_bytes : 0;
  throw Error(ErrorKind::kMemory,
              strf("a step of %lld pictures needs %s; this machine has %s\n%s",
                   static_cast<long long>(plan.config.micro_batch),
                   format_bytes(plan.peak_bytes() + other_bytes).c_str(),
                   format_bytes(available_bytes).c_str(), memory_table(plan, other_bytes).c_str()),
              advice(plan, room));
}

}  // namespace vitrail
