// Refuses a step that does not fit into memory, and names settings that would.
#include <algorithm>

#include "base/checked.h"
#include "optim/recorders.h"
#include "plan/largest_batch.h"
#include "telemetry/format.h"
#include "train/step_plan.h"

namespace vitrail {

namespace {

// The images of a micro-batch that one rank computes, the largest share.
int64_t rank_rows(int64_t micro_batch, const StepConfig& config) {
  const int64_t dp = config.distribution.mesh.size(Axis::kData);
  return ceil_div(micro_batch, dp);
}

bool is_apart(const StepPlan& plan) {
  return !plan.micro.device.shares_host_memory;
}

size_t peak_of(const StepConfig& config, const StepPlan& like) {
  return plan_step(config, *like.micro.backend, like.micro.device).peak_bytes();
}

// Returns the largest micro-batch that divides the present one and fits; 0: none does.
int64_t fitting_batch(const StepPlan& plan, const Beside& beside, size_t available, int64_t unit) {
  const int64_t present = plan.config.micro_batch;
  std::vector<int64_t> sizes = micro_batches(present, unit * plan.config.distribution.mesh.size(Axis::kData));
  std::erase(sizes, present);
  const int64_t most = largest_fitting(sizes, [&](int64_t size) {
    StepConfig config = plan.config;
    config.micro_batch = size;
    config.eval_batch = std::min(config.eval_batch, size);
    return peak_of(config, plan) + sum_of(beside(rank_rows(size, config))) <= available;
  });
  return rank_rows(most, plan.config);
}

// Norms of whole parameters cross ranks in the middle of an update, which the host's does not.
bool updates_on_host(const StepConfig& config) {
  const Mesh& mesh = config.distribution.mesh;
  const bool in_parts = mesh.size(Axis::kTensor) > 1 || (config.zero > 0 && mesh.size(Axis::kData) > 1);
  return !in_parts || !find_optimizer(config.optim.name).whole_norms;
}

// Says which micro-batch fits; empty: none does.
std::string batch_advice(const StepPlan& plan, const Beside& beside, size_t available, int64_t batch_unit) {
  const StepConfig& own = plan.config;
  const int64_t batch = fitting_batch(plan, beside, available, batch_unit);
  if (batch == 0) return {};
  std::string text =
      strf("train.micro_batch=%lld with %lld times the accumulation fits", static_cast<long long>(batch),
           static_cast<long long>(rank_rows(own.micro_batch, own) / batch));
  if (own.eval_batch != own.micro_batch && rank_rows(own.eval_batch, own) > batch)
    text += strf(" when train.eval_batch=%lld too", static_cast<long long>(batch));
  return text;
}

std::string advice(const StepPlan& plan, const Beside& beside, size_t available, int64_t batch_unit) {
  const size_t other = sum_of(beside(rank_rows(plan.config.micro_batch, plan.config)));
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  const auto try_out = [&](const StepConfig& config, const std::string& setting) {
    const size_t bytes = peak_of(config, plan) + other;
    if (bytes <= available) add(setting + " needs " + format_bytes(bytes));
    return bytes <= available;
  };
  const StepConfig& own = plan.config;
  for (const auto& [name, bytes] : beside(rank_rows(own.micro_batch, own)))
    if (name == kDecodingRow && plan.peak_bytes() + other - bytes < available)
      add("fewer loader.workers: each holds an image while it decodes it");
  if (own.images == ImageForm::kStored) {
    StepConfig config = own;
    config.images = ImageForm::kPixels;
    config.stored_images = 0;
    try_out(config, "loader.on_device=images");
  }
  for (Recompute level : {Recompute::kNorms, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock}) {
    StepConfig config = own;
    config.recompute.level = level;
    if (level > own.recompute.level) try_out(config, strf("train.recompute=%s", enum_name(level)));
  }
  if (is_apart(plan))
    for (const OffloadChoice& choice : offload_choices(own))
      if (try_out(choice.config, choice.settings)) break;
  if (own.eval_batch > own.micro_batch) {
    StepConfig config = own;
    config.eval_batch = own.micro_batch;
    try_out(config, strf("train.eval_batch=%lld", static_cast<long long>(own.micro_batch)));
  }
  if (const std::string fits = batch_advice(plan, beside, available, batch_unit); !fits.empty()) add(fits);
  if (text.empty() && own.images == ImageForm::kStored)
    return "loader.on_device=images and a smaller step: beside the dataset not even one image fits";
  return text.empty() ? "a smaller model or image: not even one image fits" : text;
}

}  // namespace

std::vector<OffloadChoice> offload_choices(const StepConfig& own) {
  std::vector<OffloadChoice> choices;
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters}) {
    StepConfig config = own;
    config.offload = offload;
    if (offload == Offload::kParameters) config.zero = 3;
    std::string settings = strf("mesh.offload=%s", enum_name(offload));
    if (config.zero != own.zero) settings = "mesh.zero=3 " + settings;
    if (offload <= own.offload || !updates_on_host(config)) continue;
    choices.push_back({settings, config});
    if (own.recompute.level == Recompute::kBlock) continue;
    config.recompute.level = Recompute::kBlock;
    choices.push_back({settings + " train.recompute=block", config});
  }
  return choices;
}

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
              advice(plan, beside, available.bytes, batch_unit) + available.advice());
}

void require_host_room(const StepPlan& plan, size_t loading_bytes, int sharing, const FreeMemory& free) {
  NamedBytes rows = plan.host_rows();
  if (rows.empty()) return require_free_memory(loading_bytes, "loading images for the GPU");
  if (loading_bytes > 0) rows.emplace_back("images being loaded", loading_bytes);
  const size_t needed = sum_of(rows) * static_cast<size_t>(sharing);
  if (free.bytes == 0 || needed <= free.bytes) return;
  const std::string ranks = sharing > 1 ? strf(" for each of %d ranks", sharing) : "";
  throw Error(
      ErrorKind::kMemory,
      strf("mesh.offload=%s needs %s of the host's memory%s; %s is %s\n%s", enum_name(plan.config.offload),
           format_bytes(sum_of(rows)).c_str(), ranks.c_str(), format_bytes(free.bytes).c_str(),
           free.where.c_str(), memory_table(rows, sum_of(rows), 2).c_str()),
      strf("mesh.offload=none where the device has room; a host with more memory; %s",
           plan.config.offload == Offload::kParameters
               ? "more ranks on several hosts, each with a smaller piece"
               : "mesh.zero=1 shares the state out among ranks on "
                 "several hosts"));
}

}  // namespace vitrail
