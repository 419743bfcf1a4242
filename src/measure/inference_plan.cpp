#include "measure/inference_plan.h"

#include <nlohmann/json.hpp>

#include "api/engine_fit.h"
#include "base/error.h"
#include "io/cards/card_text.h"
#include "measure/profile.h"
#include "plan/devices.h"
#include "plan/largest_batch.h"
#include "plan/memory_table.h"
#include "plan/node_times.h"
#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/step_plan.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// Categories of inference, shown even where they are zero.
constexpr Category kOfInference[] = {Category::kParameters, Category::kTransient, Category::kScratch,
                                     Category::kStaging};
NamedBytes rows_of(const MemoryPlan& memory) {
  return memory_rows(memory.by_category, memory.peak_bytes(), kOfInference);
}

// Returns "24 all_reduce along tp, 27.7 MiB sent"; a rank alone has none.
std::string exchanged(const ExecutionPlan& plan, const Mesh& mesh) {
  std::string text;
  for (const CollectiveRow& row : collective_rows(plan.program, mesh))
    text += strf("%s%lld %s along %s, %s sent", text.empty() ? "" : "; ", static_cast<long long>(row.count),
                 row.kind.c_str(), row.axes.c_str(), format_bytes(static_cast<size_t>(row.bytes)).c_str());
  return text.empty() ? "nothing: each has its own images" : text;
}

// Returns "12.3 ms a run, 81.3 img/s", from the target's speed; without one, what would bring a time.
std::string time_text(const ExecutionPlan& plan, const PlanTarget& target, double images) {
  if (!target.file)
    return "not known without a device file of what it runs on: vitrail bench calibrate --out FILE measures "
           "this machine, --target FILE takes it";
  const double seconds = run_seconds(plan, *target.file);
  return strf("%s a run, %s img/s; %s", format_seconds(seconds).c_str(), format_si(images / seconds).c_str(),
              basis_text(*target.file, gemm_type(plan.program)).c_str()) +
         unknown_text(unknown_types(plan.program, target.file->roofline(target.device.threads)));
}
}  // namespace

InferencePlan::InferencePlan(const VitConfig& model, const EngineOptions& options, PlanTarget device)
    : config(model),
      batch(options.batch),
      mesh(options.distribution.mesh),
      target(std::move(device)),
      plan(plan_inference(config, options, target.device)),
      largest_batch(fitting_batch(config, {options}, target.device, target.available_bytes)) {}

ordered_json to_json(const InferencePlan& p) {
  const auto& [config, batch, mesh, target, plan, fits] = p;
  const MemoryPlan& memory = plan.memory;
  ordered_json json = {{"model", config.arch},
                       {"batch", batch},
                       {"device", device_text(plan)},
                       {"params", count_params(config)},
                       {"macs", count_macs(config)},
                       {"flops", plan.program.cost().flops},
                       {"nodes", plan.program.nodes.size()},
                       {"declined", declined_lines(plan)}};
  for (const auto& [name, bytes] : rows_of(memory)) json["memory"][name] = bytes;
  json["memory"]["peak"] = memory.peak_bytes();
  json["memory_lower_bound"] = memory.persistent_bytes + memory.lower_bound_bytes;
  json["memory_available"] = target.available_bytes;
  json["largest_batch"] = fits;
  if (target.foreign_bytes > 0) json["memory_foreign"] = target.foreign_bytes;
  if (mesh.world() > 1) {
    json["mesh"] = to_string(mesh);
    json["rank"] = mesh.rank;
    json["collectives"] = ordered_json::array();
    for (const CollectiveRow& row : collective_rows(plan.program, mesh))
      json["collectives"].push_back(
          {{"kind", row.kind}, {"axes", row.axes}, {"count", row.count}, {"bytes", row.bytes}});
  }
  if (!target.file) return json;
  json.update({{"target", target.file->name},
               {"run_s", run_seconds(plan, *target.file)},
               {"unmeasured", unknown_types(plan.program, target.file->roofline(target.device.threads))}});
  return json;
}

std::string to_text(const InferencePlan& p) {
  const auto& [config, batch, mesh, target, plan, fits] = p;
  const MemoryPlan& memory = plan.memory;
  const auto macs = static_cast<double>(count_macs(config)), flops = plan.program.cost().flops;
  const auto images = static_cast<double>(batch);
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", architecture_text(config)},
      {"input", strf("%lld x %lld x %lld x %lld, %lld tokens an image", static_cast<long long>(batch),
                     static_cast<long long>(config.channels), static_cast<long long>(config.image_height),
                     static_cast<long long>(config.image_width), static_cast<long long>(config.tokens()))},
      {"parameters", format_integer(count_params(config))},
      {"MACs", strf("%s an image, %s in all (GEMMs of the model, all tokens)", format_si(macs).c_str(),
                    format_si(macs * images).c_str())},
      {"FLOPs", strf("%s an image, %s in all (every operation that runs)", format_si(flops / images).c_str(),
                     format_si(flops).c_str())},
      {"runs", strf("%zu nodes on %s", plan.program.nodes.size(), device_text(plan).c_str())},
      {"least possible", format_bytes(memory.persistent_bytes + memory.lower_bound_bytes) +
                             ": most bytes alive at once, whatever the layout"},
      {"fits", strf("%s available; largest batch %s", format_bytes(target.available_bytes).c_str(),
                    largest_batch_text(fits, mesh.size(Axis::kData)).c_str())}};
  if (mesh.world() > 1) {
    rows.emplace_back("rank", strf("%d of %d (%s), which has the most to hold", mesh.rank, mesh.world(),
                                   to_string(mesh).c_str()));
    rows.emplace_back("ranks exchange", exchanged(plan, mesh));
  }
  if (target.foreign_bytes > 0) rows.emplace_back("foreign", foreign_text(target.foreign_bytes));
  rows.emplace_back("time", time_text(plan, target, images));
  return format_pairs(rows) + "\n" + memory_table(rows_of(memory), memory.peak_bytes());
}

std::string dump_program(const VitConfig& config, const EngineOptions& options, const std::string& after) {
  std::string text;
  engine_program(config, options, [&](std::string_view pass, const Program& program) {
    if (pass == after) text = to_string(program);
  });
  return text;
}

void take_last_rank(const MeshConfig& wanted, EngineOptions& engine) {
  validate(wanted);
  const auto ranks = static_cast<int>(std::max<int64_t>(wanted.dp, 1) * wanted.tp * wanted.sp);
  engine.distribution = {.mesh = mesh_of(resolved(wanted, ranks), ranks - 1),
                         .tokens_on_tp = wanted.tokens_on_tp};
  engine.batch = std::max<int64_t>(engine.batch, engine.distribution.mesh.size(Axis::kData));
}

std::string foreign_text(size_t bytes) {
  return format_bytes(bytes) + " of the driver and its libraries, beside what is planned";
}

}  // namespace vitrail
