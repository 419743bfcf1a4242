#include "api/engine_fit.h"

#include <algorithm>

#include "plan/largest_batch.h"
#include "plan/memory_table.h"

namespace vitrail {

namespace {

// Returns "transient 3100.0 MiB, parameters 300.0 MiB": the largest rows of the memory table, largest first.
std::string largest_consumers(const MemoryPlan& memory) {
  NamedBytes rows = memory_rows(memory.by_category, memory.peak_bytes());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, rows.size()) && rows[i].second > 0; ++i)
    text += strf("%s%s %s", i > 0 ? ", " : "", rows[i].first.c_str(), mib(rows[i].second).c_str());
  return text;
}

// Returns what to try where `available` bytes are too few; `checked` of the bytes needed belong to the check.
std::string remedy(const ExecutionPlan& plan, size_t checked, size_t available, const VitConfig& config,
                   const EngineOptions& options) {
  const auto batch_beside = [&](size_t beside) {
    return available > beside ? fitting_batch(config, {options}, plan.device, available - beside) : 0;
  };
  const HeldBeside& held = plan.device.shares_host_memory ? options.beside : HeldBeside{};
  if (const int64_t fits = batch_beside(checked + held.bytes()))
    return strf("%sbatch %lld fits", options.dash, static_cast<long long>(fits));
  const size_t others = plan.memory.peak_bytes() + checked + held.batches_bytes;
  const int64_t decoders = held.decoder_bytes > 0 && available > others
                               ? static_cast<int64_t>((available - others) / held.decoder_bytes)
                               : 0;
  if (decoders > 0)
    return strf("%s%lld: fewer images are decoded at once", held.option.c_str(),
                static_cast<long long>(decoders));
  if (held.decoder_bytes > 0 && batch_beside(checked + held.batches_bytes + held.decoder_bytes) > 0)
    return strf("%s1 and a smaller %sbatch: fewer images are decoded at once", held.option.c_str(),
                options.dash);
  if (held.decoder_bytes > 0 && batch_beside(checked) > 0)
    return "smaller images: the model fits, but not with one of these being decoded beside it";
  return "a smaller model: one image does not fit either";
}

}  // namespace

ExecutionPlan largest_plan(const VitConfig& config, const std::vector<EngineOptions>& programs, int64_t batch,
                           const DeviceInfo& device) {
  ExecutionPlan largest;
  for (EngineOptions options : programs) {
    options.batch = batch;
    ExecutionPlan plan = plan_inference(config, options, device);
    if (plan.memory.peak_bytes() >= largest.memory.peak_bytes()) largest = std::move(plan);
  }
  return largest;
}

int64_t fitting_batch(const VitConfig& config, const std::vector<EngineOptions>& programs,
                      const DeviceInfo& device, size_t bytes) {
  const Mesh& mesh = programs.front().distribution.mesh;
  return largest_batch(mesh.size(Axis::kData), bytes, [&](int64_t batch) {
    return largest_plan(config, programs, batch, device).memory.peak_bytes();
  });
}

void require_fit(const ExecutionPlan& plan, size_t needed_bytes, size_t checked, const RankContext& rank,
                 const VitConfig& config, const EngineOptions& options) {
  const HeldBeside held = rank.hardware->shares_host_memory() ? options.beside : HeldBeside{};
  const size_t needed = needed_bytes + checked + held.bytes();
  const FreeMemory available = rank.available();
  if (available.bytes == 0 || needed <= available.bytes) return;
  const auto row = [](const char* name, size_t bytes) {
    return bytes > 0 ? strf(", %s %s", name, mib(bytes).c_str()) : std::string();
  };
  throw Error(ErrorKind::kMemory,
              strf("batch %lld needs %s (%s%s%s%s); %s is %s", static_cast<long long>(options.batch),
                   mib(needed).c_str(), largest_consumers(plan.memory).c_str(),
                   row("the check's own parameters", checked).c_str(),
                   row("prefetched batches", held.batches_bytes).c_str(),
                   row("images being decoded", held.bytes() - held.batches_bytes).c_str(),
                   mib(available.bytes).c_str(), available.where.c_str()),
              remedy(plan, checked, available.bytes, config, options) + available.advice());
}

}  // namespace vitrail
