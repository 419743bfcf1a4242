#include "measure/run_estimate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/free_memory.h"
#include "io/cards/card_text.h"
#include "measure/inference_plan.h"
#include "measure/rank_tables.h"
#include "measure/timing.h"
#include "plan/devices.h"
#include "plan/memory_table.h"
#include "plan/node_times.h"
#include "telemetry/format.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// The assumed share of the measured peak that mid-sized and large models reach on the CPU; small ones reach
// less.
constexpr double kAssumedShare = 0.5;

// Estimates the time node by node from a device file, or from the peak measured here without one.
void estimate_time(const RunPlan& plan, const PlanTarget& target, RunEstimate& e) {
  const StepPlan& step = plan.step();
  const int threads = target.device.threads;
  if (target.file) {
    e.calibrated = true;
    e.where = target.file->name;
    e.watts = target.file->watts;
    e.peak_gflops = target.file->peak_gflops(threads, gemm_type(step.micro.program));
    e.update_s = plan.update_seconds(*target.file);
    e.basis = basis_text(*target.file, gemm_type(step.micro.program));
    e.unmeasured = unknown_types(step.micro.program, target.file->roofline(threads));
  } else if (runs_here(target.device)) {
    e.peak_gflops = peak_of(step.micro);
    e.update_s = plan.update_flops() / (e.peak_gflops * 1e9 * kAssumedShare * step.busy_share());
  }
}

// Returns the title of a category's row; categories without a title keep their name.
std::string row_title(const std::string& name) {
  return name == "optimizer" ? "optimizer state" : name == "saved" ? "saved activations" : name;
}

std::string batch_text(const RunConfig& train) {
  if (train.accumulation == 1) return strf("%s images an update", format_integer(train.batch).c_str());
  return strf("%s images an update: %s micro-batches of %s", format_integer(train.batch).c_str(),
              format_integer(train.accumulation).c_str(), format_integer(train.micro_batch).c_str());
}

std::string params_text(const RunPlan& plan) {
  const int64_t all = count_params(plan.setup().model->card.config), trained = plan.trained_params();
  return format_integer(all) + (trained == all ? "" : ", " + format_integer(trained) + " of them trained");
}

// An upper estimate: devices draw what they may for all of the time.
double update_joules(const RunPlan& plan, const RunEstimate& e) {
  return e.watts * e.update_s * plan.ranks();
}

std::string time_text(const RunPlan& plan, const RunEstimate& e) {
  if (e.update_s <= 0) return "not known: this processor lacks the instruction set";
  const RunSetup& setup = plan.setup();
  std::string text = strf("%s an update, %s img/s", format_seconds(e.update_s).c_str(),
                          format_si(static_cast<double>(setup.config.train.batch) / e.update_s).c_str());
  if (const int64_t steps = plan.total_steps())
    text += strf(", %s for %s", format_seconds(e.update_s * static_cast<double>(steps)).c_str(),
                 format_count(steps, "update").c_str());
  if (plan.knows_data() && plan.setup().steps_per_epoch > 0)
    text += strf(", %s an epoch",
                 format_seconds(e.update_s * static_cast<double>(plan.setup().steps_per_epoch)).c_str());
  if (setup.config.mesh.offload != Offload::kNone) text += ", without the host's updates and copies";
  if (plan.ranks() > 1) text += ", without what ranks exchange";
  if (e.calibrated) return text + "; " + e.basis + unknown_text(e.unmeasured);
  return text + strf("; assumes %.0f %% of the measured %s GFLOP/s and no waiting for data",
                     100 * kAssumedShare, format_si(e.peak_gflops).c_str());
}

// Returns "at most 1.4 kJ an update, ..."; what all ranks draw while they compute.
std::string energy_text(const RunPlan& plan, const RunEstimate& e) {
  const double joules = update_joules(plan, e);
  std::string amount = format_si(joules);  // "2.42" or "1.4 K"
  if (amount.ends_with('K')) amount.back() = 'k';
  std::string text =
      strf("at most %s%sJ an update", amount.c_str(), amount.find(' ') == amount.npos ? " " : "");
  if (plan.knows_data() && plan.setup().steps_per_epoch > 0)
    text += strf(", %s kWh an epoch",
                 format_si(joules * static_cast<double>(plan.setup().steps_per_epoch) / 3.6e6).c_str());
  return text +
         strf(": %.0f W of each whole device by its data sheet, for the predicted time%s; not measured",
              e.watts, plan.ranks() > 1 ? ", without what ranks exchange" : "");
}

void add_times(ordered_json& json, const RunPlan& plan, const RunEstimate& e) {
  json["peak_gflops"] = e.peak_gflops;
  if (!e.calibrated) json["assumed_share"] = kAssumedShare;
  json["update_s"] = e.update_s;
  const int64_t steps = plan.total_steps();
  if (e.watts > 0) {
    json["watts"] = e.watts;
    json["update_joules_at_most"] = update_joules(plan, e);
    if (plan.knows_data())
      json["epoch_joules_at_most"] =
          update_joules(plan, e) * static_cast<double>(plan.setup().steps_per_epoch);
  }
  if (plan.knows_data()) json["epoch_s"] = e.update_s * static_cast<double>(plan.setup().steps_per_epoch);
  json["steps"] = steps > 0 ? ordered_json(steps) : ordered_json();
  json["total_s"] = steps > 0 ? ordered_json(e.update_s * static_cast<double>(steps)) : ordered_json();
}

std::string recompute_table(const RunPlan& plan, const RunEstimate& e) {
  Table table({{"recompute"}, {"peak", Align::kRight}, {"FLOPs an update", Align::kRight}, {""}});
  for (const RunPlan::Level& level : e.levels)
    table.row({enum_name(level.level), format_bytes(level.peak_bytes), format_si(level.update_flops),
               level.level == plan.setup().step.recompute.level ? "this plan" : ""});
  return table.text();
}
}  // namespace

RunEstimate estimate_run(const RunPlan& plan, const PlanTarget& target) {
  RunEstimate e;
  e.available = target.available_bytes;
  e.foreign = target.foreign_bytes;
  e.largest = plan.largest_micro_batch(e.available);
  e.levels = plan.recompute_levels();
  if (!target.named) e.host_available = free_memory().bytes;
  const bool level_fits = std::any_of(e.levels.begin(), e.levels.end(),
                                      [&](const RunPlan::Level& l) { return l.peak_bytes <= e.available; });
  // What needs both is no advice where recomputation alone is enough.
  if (plan.peak_bytes() > e.available) e.offload = plan.offload_that_fits(e.available, !level_fits);
  estimate_time(plan, target, e);
  return e;
}

ordered_json to_json(const RunPlan& plan, const RunEstimate& e) {
  const RunSetup& setup = plan.setup();
  const VitConfig& model = setup.model->card.config;
  const RunConfig& train = setup.config.train;
  ordered_json json = {{"model", model.arch},
                       {"training", true},
                       {"batch", train.batch},
                       {"micro_batch", train.micro_batch},
                       {"accumulation", train.accumulation},
                       {"optimizer", setup.config.optim.name},
                       {"dtype", enum_name(train.dtype)},
                       {"device", device_text(plan.step().micro)},
                       {"params", count_params(model)},
                       {"params_trained", plan.trained_params()},
                       {"macs", count_macs(model)},
                       {"flops", plan.update_flops()}};
  if (!setup.images.empty()) json["pictures"] = setup.images;
  for (const auto& [name, bytes] : plan.memory_rows()) json["memory"][name] = bytes;
  json["memory"]["peak"] = plan.peak_bytes();
  json["memory_lower_bound"] = plan.lower_bound_bytes();
  json["memory_available"] = e.available;
  if (e.foreign > 0) json["memory_foreign"] = e.foreign;
  json["fits"] = fits(plan, e);
  add_offload(json, plan, e);
  json["largest_micro_batch"] = e.largest;
  for (const RunPlan::Level& level : e.levels)
    json["recompute"].push_back(
        {{"level", enum_name(level.level)}, {"peak", level.peak_bytes}, {"flops", level.update_flops}});
  if (plan.ranks() > 1) {
    json["ranks"] = plan.ranks();
    json["largest_rank"] = plan.rank();
    json["least_rank"] = {{"rank", plan.least().rank}, {"peak", plan.least().bytes}};
    json["mesh"] = to_string(setup.step.distribution.mesh);
    json["zero"] = setup.config.mesh.zero;
    for (const RunPlan::RankNeed& need : plan.needs())
      json["rank_needs"].push_back({{"rank", need.rank}, {"images", need.images}, {"peak", need.bytes}});
    for (const RunPlan::Sums& sums : plan.kept_sums())
      json["accumulate"].push_back(
          {{"sums", enum_name(sums.kept)}, {"peak", sums.peak_bytes}, {"bytes", sums.sent_bytes}});
    if (!plan.stages().empty()) json["pipeline"] = pipeline_json(plan);
    for (const CollectiveRow& row : plan.collectives())
      json["collectives"].push_back(
          {{"kind", row.kind}, {"along", row.axes}, {"count", row.count}, {"bytes", row.bytes}});
  }
  if (e.calibrated) json.update({{"target", e.where}, {"basis", e.basis}, {"unmeasured", e.unmeasured}});
  if (e.update_s <= 0) return json;
  add_times(json, plan, e);
  return json;
}

std::string to_text(const RunPlan& plan, const RunEstimate& e) {
  const RunSetup& setup = plan.setup();
  const VitConfig& model = setup.model->card.config;
  const auto images = static_cast<double>(setup.config.train.batch);
  NamedBytes rows = plan.memory_rows();
  for (auto& [name, bytes] : rows) name = row_title(name);
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"model",
       strf("%s, %lld classes", architecture_text(model).c_str(), static_cast<long long>(model.classes))},
      {"batch", batch_text(setup.config.train)},
      {"training", strf("%s, %s", setup.config.optim.name.c_str(), enum_name(setup.config.train.dtype))},
      {"parameters", params_text(plan)},
      {"MACs", format_si(static_cast<double>(count_macs(model))) + " an image, forward, all tokens"},
      {"FLOPs", strf("%s an update%s, %s an image (forward, backward and update)",
                     format_si(plan.update_flops()).c_str(), plan.ranks() > 1 ? " of this rank" : "",
                     format_si(plan.update_flops() * static_cast<double>(plan.ranks()) / images).c_str())},
      {"runs", strf("%zu nodes a micro-batch, %zu an update, on %s", plan.step().micro.program.nodes.size(),
                    plan.step().update.program.nodes.size(), device_text(plan.step().micro).c_str())},
      {"time", time_text(plan, e)},
      {"least possible", format_bytes(plan.lower_bound_bytes()) + ": most bytes alive at once, whatever the "
                                                                  "layout"},
      {"fits", fits_text(plan, e)}};
  if (e.watts > 0 && e.update_s > 0) pairs.emplace_back("energy", energy_text(plan, e));
  if (!setup.images.empty()) pairs.emplace_back("images", setup.images);
  if (plan.ranks() > 1) pairs.insert(pairs.begin() + 2, {"ranks", mesh_text(plan)});
  if (e.foreign > 0) pairs.emplace_back("foreign", foreign_text(e.foreign));
  return format_pairs(pairs) + "\n" + memory_table(rows, plan.peak_bytes()) + host_table(plan, e) + "\n" +
         recompute_table(plan, e) + (plan.ranks() > 1 ? rank_tables(plan) : "");
}

}  // namespace vitrail
