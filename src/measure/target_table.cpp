#include "measure/target_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "measure/run_estimate.h"
#include "plan/largest_batch.h"
#include "plan/node_times.h"
#include "telemetry/format.h"
#include "telemetry/plot/plot.h"
#include "telemetry/table.h"

namespace vitrail {

std::vector<TargetRow> plan_on_all(const std::vector<std::string>& files, const TargetOptions& options,
                                   const PlanOnTarget& plan) {
  std::vector<TargetRow> rows;
  for (const std::string& path : files) {
    const DeviceFile file = read_device_file(path);
    TargetRow row{
        .device = file.name, .source = file.is_measured() ? "measured" : "data sheet", .problem = {}};
    try {
      const PlanTarget target = file_target(file, options.threads, options.isa);
      row.available_bytes = target.available_bytes;
      plan(target, row);
    } catch (const Error& error) {
      const bool lacks = error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kDevice;
      if (!lacks) throw;
      row.problem = error.message();
    }
    rows.push_back(std::move(row));
  }
  const bool runs =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.problem.empty(); });
  if (!runs && !rows.empty())
    throw Error(ErrorKind::kUsage,
                "none of the devices computes this: " + rows[0].device + ": " + rows[0].problem,
                "another --dtype, or --target with a device that has it");
  const auto order = [](const TargetRow& row) { return row.problem.empty() ? row.seconds : 1e30; };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const TargetRow& a, const TargetRow& b) { return order(a) > order(b); });
  return rows;
}

namespace {
void say_source(const ExecutionPlan& plan, const DeviceFile& file, TargetRow& row) {
  if (file.is_measured() && !is_timed(file, gemm_type(plan.program))) row.source = "roofline";
}
}  // namespace

void fill_row(const InferencePlan& plan, TargetRow& row) {
  row.needed_bytes = plan.plan.memory.peak_bytes();
  row.largest = plan.largest_batch;
  row.seconds = run_seconds(plan.plan, *plan.target.file);
  say_source(plan.plan, *plan.target.file, row);
  row.images = static_cast<double>(plan.batch);
}

void fill_row(const RunPlan& plan, const PlanTarget& target, TargetRow& row) {
  row.needed_bytes = plan.peak_bytes();
  row.largest = plan.largest_micro_batch(target.available_bytes);
  row.seconds = plan.update_seconds(*target.file);
  say_source(plan.step().micro, *target.file, row);
  row.images = static_cast<double>(plan.setup().config.train.batch);
  if (plan.knows_data()) row.epoch_s = row.seconds * static_cast<double>(plan.setup().steps_per_epoch);
}

nlohmann::ordered_json to_json(const std::vector<TargetRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TargetRow& row : rows) {
    list.push_back({{"device", row.device}, {"source", row.source}});
    if (!row.model.empty()) list.back()["model"] = row.model;
    if (!row.problem.empty()) {
      list.back()["problem"] = row.problem;
      continue;
    }
    list.back().update({{"fits", row.fits()},
                        {"peak", row.needed_bytes},
                        {"memory_available", row.available_bytes},
                        {"largest_batch", row.largest},
                        {"seconds", row.seconds},
                        {"images_per_second", row.images / row.seconds}});
    if (row.epoch_s > 0) list.back()["epoch_s"] = row.epoch_s;
  }
  return list;
}

std::string to_text(const std::vector<TargetRow>& rows) {
  const bool several =
      std::any_of(rows.begin(), rows.end(), [](const TargetRow& row) { return !row.model.empty(); });
  std::vector<Column> columns = {{"device"},
                                 {"by"},
                                 {"fits"},
                                 {"needs", Align::kRight},
                                 {"has", Align::kRight},
                                 {"largest batch", Align::kRight},
                                 {"a step", Align::kRight},
                                 {"img/s", Align::kRight},
                                 {"an epoch", Align::kRight}};
  if (several) columns.insert(columns.begin(), {"model"});
  Table table(columns);
  std::string problems;
  for (const TargetRow& row : rows) {
    if (!row.problem.empty()) {
      problems += (several ? row.model + " on " : "") + row.device + ": " + row.problem + "\n";
      continue;
    }
    std::vector<std::string> cells = {row.device,
                                      row.source,
                                      row.fits() ? "yes" : "no",
                                      format_bytes(row.needed_bytes),
                                      format_bytes(row.available_bytes),
                                      largest_batch_text(row.largest),
                                      format_seconds(row.seconds),
                                      format_si(row.images / row.seconds),
                                      row.epoch_s > 0 ? format_seconds(row.epoch_s) : ""};
    if (several) cells.insert(cells.begin(), row.model);
    table.row(cells);
  }
  return table.text() + problems;
}

Figure memory_figure(const std::vector<TargetRow>& rows) {
  constexpr double kGiB = 1 << 30;
  BarChart chart{.title = "Memory that is needed, and that there is", .x_label = "", .y_label = "GiB"};
  chart.series = {{.name = "needed", .values = {}, .low = {}, .high = {}, .tips = {}},
                  {.name = "available", .values = {}, .low = {}, .high = {}, .tips = {}}};
  const bool one_device = std::all_of(rows.begin(), rows.end(),
                                      [&](const TargetRow& row) { return row.device == rows[0].device; });
  if (one_device && !rows.empty()) chart.title += " on " + rows[0].device;
  for (const TargetRow& row : rows) {
    if (!row.problem.empty()) continue;
    const std::string& model = row.model;
    chart.groups.push_back(model.empty() ? row.device : one_device ? model : model + ", " + row.device);
    chart.series[0].values.push_back(static_cast<double>(row.needed_bytes) / kGiB);
    chart.series[1].values.push_back(static_cast<double>(row.available_bytes) / kGiB);
  }
  chart.horizontal = chart.wide = true;
  return bar_chart(chart);
}

}  // namespace vitrail
