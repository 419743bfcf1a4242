#include "measure/rank_tables.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

using nlohmann::ordered_json;

std::string mesh_text(const RunPlan& plan) {
  const MeshConfig& mesh = plan.setup().config.mesh;
  std::string text = strf("%s, %s", format_count(plan.ranks(), "rank").c_str(),
                          to_string(plan.setup().step.distribution.mesh).c_str());
  if (mesh.tokens_on_tp) text += ", tokens on tp";
  if (mesh.zero > 0) text += strf(", ZeRO %lld", static_cast<long long>(mesh.zero));
  if (plan.least().bytes == plan.peak_bytes()) return text + "; memory, FLOPs and time are those of one rank";
  return text + strf("; memory, FLOPs and time are those of rank %d, which needs most, %s more than rank %d",
                     plan.rank(), format_bytes(plan.peak_bytes() - plan.least().bytes).c_str(),
                     plan.least().rank);
}

namespace {
std::string collective_table(const RunPlan& plan) {
  Table table(
      {{"collective"}, {"along"}, {"an update", Align::kRight}, {"bytes a rank sends", Align::kRight}});
  for (const CollectiveRow& row : plan.collectives())
    table.row({row.kind, row.axes, format_integer(row.count), format_bytes(static_cast<size_t>(row.bytes))});
  return "\n" + table.text();
}

// The ranks of a mesh with other shares of a micro-batch each.
std::string needs_table(const RunPlan& plan) {
  if (plan.needs().empty()) return "";
  Table table({{"rank", Align::kRight}, {"images of a micro-batch", Align::kRight}, {"peak", Align::kRight}});
  for (const RunPlan::RankNeed& need : plan.needs())
    table.row({std::to_string(need.rank), format_integer(need.images), format_bytes(need.bytes)});
  return "\n" + table.text();
}

// The stages of a pipeline, what each needs, and when it does what.
std::string pipeline_table(const RunPlan& plan) {
  if (plan.stages().empty()) return "";
  const StepPlan& step = plan.step();
  const PipelineShape shape = step.config.stages.shape(step.config.distribution.mesh);
  const std::vector<PipelineTurn> turns = step.turns();
  Table table({{"stage", Align::kRight},
               {"blocks"},
               {"micro-batches kept", Align::kRight},
               {"peak", Align::kRight},
               {"FLOPs an update", Align::kRight},
               {"sent an update", Align::kRight}});
  for (size_t i = 0; i < plan.stages().size(); ++i) {
    const RunPlan::Stage& stage = plan.stages()[i];
    table.row({std::to_string(i), plan.blocks_of(static_cast<int>(i)), format_integer(stage.in_flight),
               format_bytes(stage.peak_bytes), format_si(stage.flops),
               format_bytes(static_cast<size_t>(stage.sent_bytes))});
  }
  return strf(
             "\nPipeline: %s, %lld micro-batches an update; with stages of equal cost they wait %.1f %% of "
             "the "
             "time\n",
             enum_name(shape.schedule), static_cast<long long>(shape.micros),
             100 * bubble_of(turns, shape.stages)) +
         table.text() + "\n" + to_string(turns, shape);
}

// Tabulates what ZeRO 2 and 3 may keep of the gradient sums between micro-batches.
std::string sums_table(const RunPlan& plan) {
  const std::vector<RunPlan::Sums> choices = plan.kept_sums();
  if (choices.empty()) return "";
  Table table({{"mesh.accumulate"}, {"peak", Align::kRight}, {"bytes a rank sends", Align::kRight}, {""}});
  for (const RunPlan::Sums& sums : choices)
    table.row({enum_name(sums.kept), format_bytes(sums.peak_bytes),
               format_bytes(static_cast<size_t>(sums.sent_bytes)),
               sums.kept == plan.setup().config.mesh.accumulate ? "this plan" : ""});
  return "\n" + table.text();
}
}  // namespace

std::string rank_tables(const RunPlan& plan) {
  return pipeline_table(plan) + needs_table(plan) + collective_table(plan) + sums_table(plan);
}

ordered_json pipeline_json(const RunPlan& plan) {
  const StepPlan& step = plan.step();
  const PipelineShape shape = step.config.stages.shape(step.config.distribution.mesh);
  ordered_json pipeline = {{"schedule", enum_name(shape.schedule)},
                           {"stages", shape.stages},
                           {"virtual_stages", shape.chunks},
                           {"micro_batches", shape.micros},
                           {"bubble", bubble_of(step.turns(), shape.stages)}};
  for (size_t i = 0; i < plan.stages().size(); ++i) {
    const RunPlan::Stage& stage = plan.stages()[i];
    pipeline["by_stage"].push_back({{"blocks", plan.blocks_of(static_cast<int>(i))},
                                    {"micro_batches_kept", stage.in_flight},
                                    {"peak", stage.peak_bytes},
                                    {"flops", stage.flops},
                                    {"sent_bytes", stage.sent_bytes}});
  }
  for (const PipelineTurn& turn : step.turns())
    pipeline["turns"].push_back({{"time", turn.time},
                                 {"stage", turn.stage},
                                 {"chunk", turn.chunk},
                                 {"micro_batch", turn.micro},
                                 {"direction", turn.backward ? "backward" : "forward"}});
  return pipeline;
}

}  // namespace vitrail
