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

size_t peak_of(const StepConfig& config, const StepPlan& like) {
  return plan_step(config, *like.micro.backend, like.micro.device).peak_bytes();
}

// The largest micro-batch that divides the present one and fits; 0: none does.
int64_t fitting_batch(const StepPlan& plan, size_t room) {
  for (int64_t parts = 2; parts <= plan.config.micro_batch; ++parts) {
    if (plan.config.micro_batch % parts != 0) continue;
    StepConfig config = plan.config;
    config.micro_batch /= parts;
    config.eval_batch = std::min(config.eval_batch, config.micro_batch);
    if (peak_of(config, plan) <= room) return config.micro_batch;
  }
  return 0;
}

std::string advice(const StepPlan& plan, size_t room) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  const auto try_out = [&](const StepConfig& config, const std::string& setting) {
    const size_t bytes = peak_of(config, plan);
    if (bytes <= room) add(setting + " needs " + format_bytes(bytes));
  };
  const StepConfig& own = plan.config;
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
  if (const int64_t batch = fitting_batch(plan, room)) {
    add(strf("train.micro_batch=%lld with %lld times the accumulation fits", static_cast<long long>(batch),
             static_cast<long long>(own.micro_batch / batch)));
    if (own.eval_batch != own.micro_batch && own.eval_batch > batch)
      text += strf(" when train.eval_batch=%lld too", static_cast<long long>(batch));
  }
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
