#include "measure/run_estimate.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/cards/card_text.h"
#include "measure/inference_plan.h"
#include "measure/timing.h"
#include "plan/devices.h"
#include "plan/memory_table.h"
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
    e.peak_gflops = target.file->peak_gflops(threads, gemm_type(step.micro.program));
    const Roofline roofline = target.file->roofline(threads);
    const auto runs = static_cast<double>(plan.setup().config.train.accumulation);
    e.update_s = (step.pipelined ? 1.0 : runs) * estimate_seconds(step.micro.program, roofline) +
                 estimate_seconds(step.update.program, roofline);
    e.unmeasured = unknown_types(step.micro.program, roofline);
  } else if (runs_here(target.device)) {
    e.peak_gflops = peak_of(step.micro);
    e.update_s = plan.update_flops() / (e.peak_gflops * 1e9 * kAssumedShare);
  }
  // The stage that needs most computes; while the pipeline fills and drains it waits.
  if (step.pipelined)
    e.update_s /= 1 - bubble_of(step.turns(), step.config.distribution.mesh.size(Axis::kPipeline));
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

std::string time_text(const RunPlan& plan, const RunEstimate& e) {
  if (e.update_s <= 0) return "not known: this processor lacks the instruction set";
  const RunSetup& setup = plan.setup();
  std::string text = strf("%s an update, %s img/s", format_seconds(e.update_s).c_str(),
                          format_si(static_cast<double>(setup.config.train.batch) / e.update_s).c_str());
  if (const int64_t steps = plan.total_steps())
    text += strf(", %s for %s", format_seconds(e.update_s * static_cast<double>(steps)).c_str(),
                 format_count(steps, "update").c_str());
  const bool gpu = !plan.device().shares_host_memory;
  if (e.calibrated)
    return text + (gpu ? " at best" : "") + "; by what was measured on " + e.where +
           unknown_text(e.unmeasured);
  return text + strf("; assumes %.0f %% of the measured %s GFLOP/s and no waiting for data",
                     100 * kAssumedShare, format_si(e.peak_gflops).c_str());
}

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

// What ZeRO 2 and 3 may keep of the gradient sums between micro-batches.
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
  estimate_time(plan, target, e);
  return e;
}

namespace {
void add_pipeline(ordered_json& json, const RunPlan& plan) {
  if (plan.stages().empty()) return;
  const StepPlan& step = plan.step();
  const PipelineShape shape = step.config.stages.shape(step.config.distribution.mesh);
  ordered_json& pipeline = json["pipeline"];
  pipeline = {{"schedule", enum_name(shape.schedule)},
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
}
}  // namespace

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
  json["fits"] = plan.peak_bytes() <= e.available;
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
    add_pipeline(json, plan);
    for (const CollectiveRow& row : plan.collectives())
      json["collectives"].push_back(
          {{"kind", row.kind}, {"along", row.axes}, {"count", row.count}, {"bytes", row.bytes}});
  }
  if (e.calibrated) json.update({{"target", e.where}, {"unmeasured", e.unmeasured}});
  if (e.update_s <= 0) return json;
  json["peak_gflops"] = e.peak_gflops;
  if (!e.calibrated) json["assumed_share"] = kAssumedShare;
  json["update_s"] = e.update_s;
  const int64_t steps = plan.total_steps();
  json["steps"] = steps > 0 ? ordered_json(steps) : ordered_json();
  json["total_s"] = steps > 0 ? ordered_json(e.update_s * static_cast<double>(steps)) : ordered_json();
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
      {"FLOPs",
       strf("%s an update, %s an image (forward, backward and update)",
            format_si(plan.update_flops()).c_str(), format_si(plan.update_flops() / images).c_str())},
      {"runs", strf("%zu nodes a micro-batch, %zu an update, on %s", plan.step().micro.program.nodes.size(),
                    plan.step().update.program.nodes.size(), device_text(plan.step().micro).c_str())},
      {"time", time_text(plan, e)},
      {"least possible", format_bytes(plan.lower_bound_bytes()) + ": most bytes alive at once, whatever the "
                                                                  "layout"},
      {"fits",
       strf("%s; %s available; largest micro-batch %s", plan.peak_bytes() <= e.available ? "yes" : "no",
            format_bytes(e.available).c_str(), format_integer(e.largest).c_str())}};
  if (!setup.images.empty()) pairs.emplace_back("images", setup.images);
  if (plan.ranks() > 1) pairs.insert(pairs.begin() + 2, {"ranks", mesh_text(plan)});
  if (e.foreign > 0) pairs.emplace_back("foreign", foreign_text(e.foreign));
  return format_pairs(pairs) + "\n" + memory_table(rows, plan.peak_bytes()) + "\n" +
         recompute_table(plan, e) +
         (plan.ranks() > 1
              ? pipeline_table(plan) + needs_table(plan) + collective_table(plan) + sums_table(plan)
              : "");
}

std::string dump_program(const RunPlan& plan, const std::string& after) {
  std::string text;
  record_micro(plan.setup().step, plan.step().micro.backend->traits(),
               [&](std::string_view pass, const Program& program) {
                 if (pass == after) text = to_string(program);
                 if (pass == after && pass == "distribute") text = pins_text(plan.setup().step) + text;
               });
  return text;
}

}  // namespace vitrail
