// What is told of a planned training run: batch, FLOPs, time, energy, ranks, pipeline, and what an offload
// keeps on the host. Numbers come from the plan itself or by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/settings.h"
#include "backend/registry.h"
#include "measure/rank_tables.h"
#include "measure/run_estimate.h"
#include "measure/synthetic_steps.h"
#include "models/vit_params.h"
#include "ops/update/control.h"
#include "source_root.h"
#include "squeezed.h"
#include "telemetry/format.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

std::string run_text_config(const std::string& mesh, const std::string& more = "") {
  return R"({"model": {"image_height": 16, "image_width": 16, "patch": 8, "width": 32, "depth": 4, "heads": 2,
                       "mlp": 64},
             "data": {"train": "synthetic:3x16x16x4x64", "val": "synthetic:3x16x16x4x16"},
             "mesh": )" +
         mesh + R"(, "train": {"batch": 16, "micro_batch": 4, "steps": 8)" + more + "}}";
}

PlanTarget target_named(const char* name) {
  return file_target(read_device_file(std::string(VT_SOURCE_DIR "/configs/devices/") + name + ".json"), 0,
                     "");
}

RunPlan plan_of_run(const std::string& config, const PlanTarget& target) {
  return {training_config(config), std::nullopt, find_backend(target.device.backend), target.device};
}

// Widths of columns are not compared.
bool tells(const std::string& text, const std::string& part) {
  return squeezed(text).find(squeezed(part)) != std::string::npos;
}

TEST(RunReport, TellsBatchFlopsTimeAndEnergy) {
  const PlanTarget target = target_named("h200");
  const RunPlan plan = plan_of_run(run_text_config("{}"), target);
  RunEstimate e = estimate_run(plan, target);
  EXPECT_EQ(e.where, target.file->name);
  EXPECT_EQ(e.watts, target.file->watts);
  EXPECT_EQ(e.available, target.available_bytes);
  EXPECT_EQ(e.foreign, target.foreign_bytes);
  EXPECT_EQ(e.largest, plan.largest_micro_batch(target.available_bytes));
  EXPECT_EQ(e.levels.size(), 5u);
  // Two seconds an update of 16 images, four updates an epoch, eight in all.
  e.update_s = 2, e.watts = 900, e.basis = "by rule", e.unmeasured.clear(), e.foreign = 1 << 20;
  const std::string text = to_text(plan, e);
  const std::string flops = format_si(plan.update_flops());
  for (const std::string& part :
       {std::string("16 images an update: 4 micro-batches of 4\n"),
        std::string("training        adamw, f32\n"),
        format_integer(count_params(plan.setup().model->card.config)) + "\n",
        flops + " an update, " + format_si(plan.update_flops() / 16) +
            " an image (forward, backward and update)",
        std::string("2.00 s an update, 8.00 img/s, 16.0 s for 8 updates, 8.00 s an epoch; by rule\n"),
        std::string(
            "at most 1.80 kJ an update, 0.00 kWh an epoch: 900 W of each whole device by its data sheet, for "
            "the predicted time; not measured\n"),
        format_bytes(plan.lower_bound_bytes()) + ": most bytes alive at once", std::string("yes; "),
        std::string("1.00 MiB of the driver and its libraries"), std::string("saved activations"),
        std::string("optimizer state"), std::string("4 classes")})
    EXPECT_TRUE(tells(text, part)) << part << "\n" << text;
  EXPECT_FALSE(tells(text, "ranks"));
  ordered_json json = to_json(plan, e);
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, double>>{
           {"batch", 16},
           {"micro_batch", 4},
           {"accumulation", 4},
           {"update_s", 2},
           {"watts", 900},
           {"update_joules_at_most", 1800},
           {"epoch_joules_at_most", 7200},
           {"epoch_s", 8},
           {"steps", 8},
           {"total_s", 16},
           {"memory_foreign", 1 << 20},
           {"flops", plan.update_flops()},
           {"largest_micro_batch", static_cast<double>(e.largest)},
           {"peak_gflops", e.peak_gflops}})
    EXPECT_EQ(json.at(key).get<double>(), value) << key;
  EXPECT_EQ(json["optimizer"], "adamw");
  EXPECT_EQ(json["fits"], true);
  EXPECT_FALSE(json.contains("assumed_share") || json.contains("ranks"));
  EXPECT_EQ(json["recompute"].size(), 5u);
  EXPECT_EQ(json["recompute"][0]["peak"], plan.peak_bytes());
  e.watts = 3.6e6 / 2, e.update_s = 0.25, e.calibrated = false, e.peak_gflops = 1500;
  EXPECT_TRUE(tells(to_text(plan, e), "at most 450 kJ an update, 0.50 kWh an epoch")) << to_text(plan, e);
  EXPECT_TRUE(
      tells(to_text(plan, e), "; assumes 50 % of the measured 1.50 K GFLOP/s and no waiting for data"));
  EXPECT_EQ(to_json(plan, e)["assumed_share"], 0.5);
  e.update_s = 0;
  EXPECT_TRUE(tells(to_text(plan, e), "not known: this processor lacks the instruction set"));
  EXPECT_FALSE(tells(to_text(plan, e), "energy") || to_json(plan, e).contains("update_s"));
}

// Every level of recomputation has a row, and that of the plan says so.
TEST(RunReport, MarksTheLevelOfThePlan) {
  const PlanTarget target = target_named("h200");
  for (const char* level : {"none", "norms", "cheap", "mlp", "block"}) {
    const RunPlan plan = plan_of_run(run_text_config("{}", strf(R"(, "recompute": "%s")", level)), target);
    RunEstimate e = estimate_run(plan, target);
    std::string wanted = "─\n";
    for (const RunPlan::Level& one : e.levels)
      wanted += std::string(enum_name(one.level)) + " " + format_bytes(one.peak_bytes) + " " +
                format_si(one.update_flops) +
                (enum_name(one.level) == std::string(level) ? " this plan" : "") + "\n";
    EXPECT_TRUE(squeezed(to_text(plan, e)).ends_with(wanted)) << wanted << squeezed(to_text(plan, e));
  }
}

TEST(RunReport, WithoutADeviceFileHalfOfThePeakIsAssumed) {
  const PlanTarget target = resolve_target({.threads = 1});
  const RunPlan plan = plan_of_run(run_text_config("{}"), target);
  const RunEstimate e = estimate_run(plan, target);
  EXPECT_EQ(e.where, "here");
  EXPECT_FALSE(e.calibrated);
  EXPECT_GT(e.host_available, 0u);
  EXPECT_NEAR(e.update_s, plan.update_flops() / (e.peak_gflops * 1e9 * 0.5), 1e-12);
}

TEST(RunReport, RanksDrawPowerTogether) {
  const PlanTarget target = target_named("h200");
  const RunPlan plan = plan_of_run(run_text_config(R"({"dp": 2, "zero": 1})"), target);
  RunEstimate e = estimate_run(plan, target);
  e.update_s = 2, e.watts = 500;
  const std::string text = to_text(plan, e);
  const std::string flops = format_si(plan.update_flops());
  for (const std::string& part :
       {std::string("ranks           2 ranks, dp=2, ZeRO 1; memory, FLOPs and time are those of rank "),
        flops + " an update of this rank, " + format_si(plan.update_flops() * 2 / 16) + " an image",
        std::string("at most 2.00 kJ an update"),
        std::string("for the predicted time, without what ranks exchange"),
        std::string(", without what ranks exchange; ")})
    EXPECT_TRUE(tells(text, part)) << part << "\n" << text;
  EXPECT_TRUE(tells(mesh_text(plan), ", which needs most, " +
                                         format_bytes(plan.peak_bytes() - plan.least().bytes) +
                                         " more than rank " + std::to_string(plan.least().rank)));
  EXPECT_EQ(mesh_text(plan_of_run(run_text_config(R"({"dp": 2})"), target)),
            "2 ranks, dp=2; memory, FLOPs and time are those of one rank");
  const ordered_json json = to_json(plan, e);
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["zero"], 1);
  EXPECT_EQ(json["mesh"], to_string(plan.setup().step.distribution.mesh));
  EXPECT_EQ(json["update_joules_at_most"], 2000);
  EXPECT_EQ(json["least_rank"]["peak"], plan.least().bytes);
  ASSERT_EQ(json["collectives"].size(), plan.collectives().size());
  for (size_t i = 0; i < plan.collectives().size(); ++i) {
    const CollectiveRow row = plan.collectives()[i];
    EXPECT_EQ(
        json["collectives"][i],
        (ordered_json{{"kind", row.kind}, {"along", row.axes}, {"count", row.count}, {"bytes", row.bytes}}));
    EXPECT_TRUE(tells(text, row.kind + "  " + row.axes)) << row.kind << text;
  }
}

TEST(RunReport, APipelineTellsItsStages) {
  const PlanTarget target = target_named("xeon-amx-16");
  const RunPlan plan = plan_of_run(run_text_config(R"({"pp": 2})"), target);
  const ordered_json json = pipeline_json(plan);
  EXPECT_EQ(json["stages"], 2);
  EXPECT_EQ(json["micro_batches"], 4);
  EXPECT_EQ(json["virtual_stages"], 1);
  EXPECT_NEAR(json["bubble"].get<double>(), 0.2, 1e-12);  // one of five turns
  ASSERT_EQ(json["by_stage"].size(), 2u);
  EXPECT_EQ(json["by_stage"][0]["blocks"], "0-1");
  EXPECT_EQ(json["by_stage"][1]["blocks"], "2-3");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(json["by_stage"][i]["peak"], plan.stages()[i].peak_bytes);
    EXPECT_EQ(json["by_stage"][i]["flops"], plan.stages()[i].flops);
    EXPECT_EQ(json["by_stage"][i]["sent_bytes"], plan.stages()[i].sent_bytes);
    EXPECT_EQ(json["by_stage"][i]["micro_batches_kept"], plan.stages()[i].in_flight);
  }
  ASSERT_EQ(json["turns"].size(), 16u) << "two stages, four micro-batches, both ways";
  EXPECT_EQ(json["turns"][0],
            ordered_json::parse(
                R"({"time": 0, "stage": 0, "chunk": 0, "micro_batch": 0, "direction": "forward"})"));
  EXPECT_EQ(json["turns"].back()["direction"], "backward");
  EXPECT_EQ(json["turns"].back()["micro_batch"], 3);
  const std::string text = rank_tables(plan);
  EXPECT_TRUE(
      tells(text, "4 micro-batches an update; with stages of equal cost they wait 20.0 % of the time"))
      << text;
  EXPECT_TRUE(tells(text, "0-1")) << text;
}

// Device and host each have their limit, and what is short is told.
TEST(RunReport, WhatLiesOnTheHostMustFitThere) {
  const PlanTarget target = target_named("h200");
  const RunPlan plain = plan_of_run(run_text_config("{}"), target);
  const RunPlan moved = plan_of_run(run_text_config(R"({"offload": "optimizer"})"), target);
  EXPECT_EQ(host_table(plain, {}), "");
  const size_t host = sum_of(moved.host_rows());
  ASSERT_GT(host, 0u);
  RunEstimate e;
  e.available = moved.peak_bytes(), e.host_available = host, e.largest = 4;
  EXPECT_TRUE(fits(moved, e));
  EXPECT_EQ(fit_warning(moved, e), "");
  EXPECT_TRUE(fits_text(moved, e).starts_with("yes; " + format_bytes(e.available) +
                                              " available; largest micro-batch 4"));
  e.host_available = host - 1;
  EXPECT_FALSE(fits(moved, e));
  EXPECT_EQ(fit_warning(moved, e), "warning: what lies on the host does not fit its memory; " +
                                       format_bytes(host - 1) + " are free");
  e.host_available = 0;
  EXPECT_TRUE(fits(moved, e)) << "not known";
  e.available = moved.peak_bytes() - 1;
  EXPECT_EQ(fit_warning(moved, e), "warning: this does not fit here; the largest micro-batch that does is 4");
  e.calibrated = true, e.where = "T4",
  e.offload = RunPlan::Offloaded{"mesh.offload=optimizer", 1 << 20, 2 << 20};
  EXPECT_EQ(fit_warning(moved, e),
            "warning: this does not fit on T4; the largest micro-batch that does is 4; "
            "mesh.offload=optimizer would "
            "make it fit");
  EXPECT_TRUE(
      fits_text(moved, e).ends_with("; mesh.offload=optimizer would: 1.00 MiB there, 2.00 MiB on the host"));
  EXPECT_TRUE(fits_text(moved, e).starts_with("no; "));
  e.host_available = 5 << 20;
  EXPECT_TRUE(host_table(moved, e).starts_with(
      "\nOn the host (mesh.offload=optimizer), of 5.00 MiB that are free\n"));
  ordered_json json;
  add_offload(json, moved, e);
  EXPECT_EQ(json["host_memory"]["peak"], host);
  EXPECT_EQ(json["host_memory_available"], 5 << 20);
  EXPECT_EQ(json["host_page_locked"], moved.step().page_locked_bytes());
  EXPECT_EQ(
      json["offload"],
      ordered_json::parse(R"([{"settings": "mesh.offload=optimizer", "peak": 1048576, "host": 2097152}])"));
  e.update_s = 1;
  EXPECT_TRUE(tells(to_text(moved, e), ", without the host's updates and copies"));
  // What would make it fit is sought only where it does not.
  PlanTarget tight = target;
  tight.available_bytes = plain.peak_bytes();
  EXPECT_FALSE(estimate_run(plain, tight).offload);
  EXPECT_EQ(estimate_run(plain, tight).host_available, estimate_run(plain, target).host_available);
}

TEST(SyntheticSteps, SayWhatTheyTrain) {
  const PlanTarget target = resolve_target({.threads = 1});
  const RunPlan plan = plan_of_run(run_text_config("{}", R"(, "recompute": "mlp")"), target);
  const VitConfig& model = plan.setup().model->card.config;
  const BenchResult r = described(plan);
  EXPECT_EQ(r.model, "ViT 32x4");
  EXPECT_TRUE(r.training);
  EXPECT_EQ(r.batch, 16);
  EXPECT_EQ(r.dtype, "f32");
  EXPECT_EQ(r.flops, 96.0 * static_cast<double>(count_run_macs(model))) << "three passes of two FLOPs a MAC";
  EXPECT_EQ(r.model_flops, 96.0 * static_cast<double>(count_macs(model)));
  EXPECT_EQ(r.peak_bytes, plan.step().peak_bytes());
  EXPECT_EQ(training_text(plan), "adamw, f32, recompute mlp, micro-batches of 4");
  EXPECT_EQ(training_facts(plan),
            ordered_json::parse(R"({"micro_batch": 4, "optimizer": "adamw", "recompute": "mlp"})"));
  RankContext rank(target.device);
  SyntheticSteps steps(plan, rank);
  const double before = steps.loss_share();
  EXPECT_NEAR(before, std::log(4.0), 0.7) << "four classes, nothing learned";
  for (int i = 0; i < 3; ++i) steps.run();
  EXPECT_EQ(steps.steps(), 3);
  const StepValues last = StepValues::read(steps.update().output("control").as<double>());
  EXPECT_DOUBLE_EQ(last.lr, 1e-4) << "a tenth of the usual peak";
  EXPECT_LT(steps.loss_share(), before);
  EXPECT_EQ(steps.programs().size(), 2u);
  EXPECT_EQ(steps.time_nodes(), 5);
  EXPECT_EQ(steps.steps(), 8);
  EXPECT_EQ(steps.micro().times()[0].runs, 5 * 4);
  EXPECT_EQ(steps.update().times()[0].runs, 5);
}

}  // namespace
}  // namespace vitrail
