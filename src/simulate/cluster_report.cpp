// The plan of a cluster as text, as JSON and as a timeline.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "simulate/cluster_plan.h"
#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/offload_time.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

std::string micro_text(const ClusterRow& row) {
  return strf("%lld x %lld", static_cast<long long>(row.accumulation),
              static_cast<long long>(row.micro_batch));
}

// "256 images an update": of the only mesh, also who shares a micro-batch.
std::string batch_text(const ClusterPlan& plan) {
  std::string text = format_integer(plan.batch) + " images an update";
  const MeshConfig& mesh = plan.rows.at(0).mesh;
  const int64_t together = mesh.tp * mesh.sp * mesh.pp;
  if (plan.rows.size() > 1 || together == 1) return text;
  return text + strf(", %s of them on each of the %s groups of %s",
                     format_integer(plan.rows[0].micro_batch * plan.rows[0].accumulation).c_str(),
                     format_integer(mesh.dp).c_str(), format_count(together, "device").c_str());
}

const char* kind_name(CollectiveKind kind) {
  constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather",
                                    "all_to_all", "send",           "receive"};
  return kNames[static_cast<size_t>(kind)];
}

bool offloads(const ClusterPlan& plan) {
  return std::any_of(plan.rows.begin(), plan.rows.end(), [](const auto& row) { return row.host_s > 0; });
}

std::string row_table(const ClusterPlan& plan) {
  const bool host = offloads(plan);
  std::vector<Column> columns = {{"mesh"}};
  for (const char* name :
       {"ZeRO", "micro-batches", "update", "compute", "exposed", "hidden", "bubble", "slowest"})
    columns.push_back({name, Align::kRight});
  if (host) columns.push_back({"host", Align::kRight});
  for (const char* name : {"img/s", "efficiency", "memory"}) columns.push_back({name, Align::kRight});
  columns.push_back({""});
  Table table(columns);
  for (const ClusterRow& row : plan.rows) {
    std::vector<std::string> cells = {mesh_text(row.mesh), std::to_string(row.mesh.zero)};
    if (!row.refused.empty()) {
      cells.resize(columns.size() - 1);
      cells.push_back(row.refused);
      table.row(cells);
      continue;
    }
    cells.push_back(micro_text(row));
    for (const double seconds :
         {row.step_s, row.compute_s, row.exposed_s, row.hidden_s, row.bubble_s, row.slowest_s})
      cells.push_back(format_seconds(seconds));
    if (host) cells.push_back(format_seconds(row.host_s));
    cells.insert(cells.end(), {format_si(row.images_s), strf("%.1f %%", 100 * row.efficiency),
                               format_bytes(row.peak_bytes), row.fits ? "" : "does not fit"});
    table.row(cells);
  }
  return table.text();
}

std::string exchange_table(const ClusterRow& row) {
  Table table({{"collective"},
               {"along"},
               {"an update", Align::kRight},
               {"bytes", Align::kRight},
               {"on its way", Align::kRight},
               {"algorithm"}});
  for (const auto& [key, times] : row.exchanges)
    table.row({kind_name(key.first), to_string(AxisSet::from_bits(key.second)), format_integer(times.count),
               format_bytes(static_cast<uint64_t>(times.bytes)), format_seconds(times.seconds),
               key.first >= CollectiveKind::kAllToAll ? "" : enum_name(times.algorithm)});
  return table.text();
}

// "40 ms more exposed communication": the part of the step in which two meshes differ most, and its sign.
std::string difference(const ClusterRow& best, const ClusterRow& other) {
  const std::pair<const char*, double> parts[] = {
      {"compute", other.compute_s - best.compute_s},
      {"exposed communication", other.exposed_s - best.exposed_s},
      {"bubble", other.bubble_s - best.bubble_s},
      {"waiting for the slowest", other.slowest_s - best.slowest_s},
      {"waiting for the host", other.host_s - best.host_s}};
  std::vector<std::pair<const char*, double>> sorted(std::begin(parts), std::end(parts));
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
  std::string text;
  for (const auto& [name, seconds] : sorted) {
    if (std::abs(seconds) < 0.002 * best.step_s) continue;
    text += (text.empty() ? "" : ", ") + format_seconds(std::abs(seconds)) +
            (seconds > 0 ? " more " : " less ") + name;
  }
  return text.empty() ? "nothing that counts" : text;
}

std::string advice(const ClusterPlan& plan) {
  const ClusterRow* best = plan.best();
  if (!best) return "No mesh runs: none fits into " + format_bytes(plan.available_bytes) + " a device.\n";
  if (plan.rows.size() == 1) return {};
  std::string text =
      strf("Advice: %s, ZeRO %lld, %s images: %s an update, %s img/s.\n", mesh_text(best->mesh).c_str(),
           static_cast<long long>(best->mesh.zero), micro_text(*best).c_str(),
           format_seconds(best->step_s).c_str(), format_si(best->images_s).c_str());
  const ClusterRow* second = plan.runner_up();
  if (!second) return text + "Nothing else runs.\n";
  return text +
         strf("Runner-up: %s, ZeRO %lld, %s images: %.1f %% longer (%s), %s of memory instead of %s.\n",
              mesh_text(second->mesh).c_str(), static_cast<long long>(second->mesh.zero),
              micro_text(*second).c_str(), 100 * (second->step_s / best->step_s - 1),
              difference(*best, *second).c_str(), format_bytes(second->peak_bytes).c_str(),
              format_bytes(best->peak_bytes).c_str());
}

std::string failure_table(const ClusterFailures& failures) {
  const FailureModel& model = failures.model;
  const std::string text =
      strf("A failure every %s on the average, a checkpoint takes %s, a restart %s\n",
           format_seconds(model.mtbf_s).c_str(), format_seconds(model.checkpoint_s).c_str(),
           format_seconds(model.restart_s).c_str());
  if (!makes_progress(model))
    return text + "No progress is made: failures come before a checkpoint ends, whatever the interval.\n";
  Table table({{"checkpoints every"}, {"interval", Align::kRight}, {"time that counts", Align::kRight}});
  for (const CheckpointInterval& row : checkpoint_intervals(model, failures.saved_every_s))
    table.row({row.name, format_seconds(row.seconds), strf("%.1f %%", 100 * row.share)});
  return text + table.text();
}

ordered_json row_json(const ClusterRow& row) {
  ordered_json json = {{"mesh", mesh_text(row.mesh)}, {"dp", row.mesh.dp}, {"tp", row.mesh.tp},
                       {"sp", row.mesh.sp},           {"pp", row.mesh.pp}, {"zero", row.mesh.zero}};
  if (!row.refused.empty()) {
    json["refused"] = row.refused;
    return json;
  }
  json.update({{"micro_batch", row.micro_batch},
               {"accumulation", row.accumulation},
               {"update_s", row.step_s},
               {"compute_s", row.compute_s},
               {"exposed_s", row.exposed_s},
               {"hidden_s", row.hidden_s},
               {"bubble_s", row.bubble_s},
               {"slowest_s", row.slowest_s},
               {"host_s", row.host_s},
               {"images_s", row.images_s},
               {"efficiency", row.efficiency},
               {"memory", row.peak_bytes},
               {"fits", row.fits}});
  for (const auto& [key, times] : row.exchanges)
    json["collectives"].push_back({{"kind", kind_name(key.first)},
                                   {"along", to_string(AxisSet::from_bits(key.second))},
                                   {"count", times.count},
                                   {"bytes", times.bytes},
                                   {"seconds", times.seconds},
                                   {"algorithm", enum_name(times.algorithm)}});
  return json;
}

}  // namespace

ordered_json to_json(const ClusterPlan& plan) {
  ordered_json json = {{"network", plan.network}, {"target", plan.device},
                       {"nodes", plan.nodes},     {"devices", plan.devices},
                       {"batch", plan.batch},     {"memory_available", plan.available_bytes},
                       {"slowest", plan.slowest}, {"meshes", ordered_json::array()}};
  if (plan.one_device_s > 0) json["one_device_s"] = plan.one_device_s;
  for (const ClusterRow& row : plan.rows) json["meshes"].push_back(row_json(row));
  if (plan.best()) json["advice"] = mesh_text(plan.best()->mesh);
  if (plan.runner_up()) json["runner_up"] = mesh_text(plan.runner_up()->mesh);
  if (plan.failures) {
    const FailureModel& model = plan.failures->model;
    json["failures"] = {{"mtbf_s", model.mtbf_s},
                        {"checkpoint_s", model.checkpoint_s},
                        {"restart_s", model.restart_s},
                        {"progress", makes_progress(model)}};
    for (const CheckpointInterval& row : checkpoint_intervals(model, plan.failures->saved_every_s))
      json["failures"]["intervals"][row.name] = {{"seconds", row.seconds}, {"effective", row.share}};
  }
  return json;
}

std::string to_text(const ClusterPlan& plan) {
  const std::string times = plan.one_device_s > 0 ? strf("%s an update of one device, as measured",
                                                         format_seconds(plan.one_device_s).c_str())
                                                  : "predicted node by node for " + plan.device;
  std::string text = format_pairs(
      {{"cluster", strf("%s of %s, %s", format_count(plan.nodes, "node").c_str(),
                        format_count(plan.devices, "device").c_str(), plan.network.c_str())},
       {"device", plan.device + ", " + format_bytes(plan.available_bytes) + " available"},
       {"batch", batch_text(plan)},
       {"times", times},
       {"slowest", strf("the slowest of %s is expected to take %.3f times as long as one",
                        format_count(plan.nodes * plan.devices, "device").c_str(), plan.slowest)}});
  text += "\n" + row_table(plan) + "\n" + advice(plan);
  if (offloads(plan))
    text +=
        strf("Offload assumes %.0f GB/s between host and device and %.0f GB/s for the host's updates.\n%s",
             kHostLinkBytes / 1e9, kHostUpdateBytes / 1e9, plan.rows.size() > 1 ? "" : "\n");
  if (const ClusterRow* row = plan.best() ? plan.best() : &plan.rows[0];
      row->refused.empty() && !row->exchanges.empty())
    text += (plan.rows.size() > 1 ? "\nThe collectives of the first:\n" : "") + exchange_table(*row);
  if (plan.failures) text += "\n" + failure_table(*plan.failures);
  return text;
}

ordered_json trace_of(const ClusterRow& row) {
  ordered_json events = ordered_json::array();
  for (size_t i = 0; i < row.span_ranks.size(); ++i) {
    events.push_back({{"name", "process_name"},
                      {"ph", "M"},
                      {"pid", i},
                      {"args", {{"name", strf("rank %d", row.span_ranks[i])}}}});
    for (const int lane : {0, 1})
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", i},
                        {"tid", lane},
                        {"args", {{"name", lane == 0 ? "compute" : "communication"}}}});
  }
  for (const SimulatedSpan& span : row.spans)
    events.push_back({{"name", span.name},
                      {"cat", span.exchange ? "communication" : "compute"},
                      {"ph", "X"},
                      {"ts", span.begin * 1e6},
                      {"dur", (span.end - span.begin) * 1e6},
                      {"pid", span.rank},
                      {"tid", span.exchange ? 1 : 0}});
  return {{"traceEvents", events}};
}

}  // namespace vitrail
