// Rows of a profile: every node in its part and operation, no FLOP lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "measure/profile_page.h"
#include "measure/profile_table.h"
#include "models/vit_params.h"
#include "stored_text.h"
#include "telemetry/page_fault.h"
#include "train/step_plan.h"

namespace vitrail {
namespace {

VitConfig small_config() {
  VitConfig config;
  config.image_height = 32, config.image_width = 48, config.patch = 16;
  config.heads = 2, config.width = 8;
  return config;
}

// A model with every step there is, and what training adds to it in bf16, before nodes are fused.
Program recorded_with_everything() {
  StepConfig config;
  config.model = small_config();
  config.model.mlp = 16, config.model.depth = 2, config.model.classes = 5, config.model.registers = 2;
  config.model.layer_scale = config.model.qk_norm = config.model.distilled = true;
  config.micro_batch = 2;
  config.dropout = config.drop_path = 0.1;
  config.distill.kind = DistillKind::kSoft;
  config.precision.compute = DType::kBF16;
  config.loss_scale.dynamic = true;
  for (const ParamSpec& spec : vit_params(config.model))
    config.trained.push_back({.name = spec.name, .desc = {DType::kF32, spec.shape}});
  Program program;
  record_micro(config, {}, [&](std::string_view pass, const Program& after) {
    if (pass == "precision") program = after;
  });
  return program;
}

// The row in which a node is counted.
std::string row_with(const Program& program, const std::string& name, ProfileBy by) {
  ExecutionPlan plan;
  for (const Node& node : program.nodes)
    if (node.name == name) plan.program.nodes = {node};
  plan.program.values = program.values;
  plan.choices.resize(plan.program.nodes.size());
  const std::vector<ProfileRow> rows = profile_rows(plan, std::vector<NodeTime>(1, {0.5, 5}), by);
  return rows.size() == 1 ? rows[0].name : "no node " + name;
}

TEST(Profile, NodesBelongToPartsAndOperations) {
  const std::pair<const char*, const char*> parts[] = {{"patch_embed.bias", "embeddings"},
                                                       {"pos_drop", "embeddings"},
                                                       {"grad/cls_token", "embeddings"},
                                                       {"grad/dist_token", "embeddings"},
                                                       {"grad/reg_token", "embeddings"},
                                                       {"images.bf16", "embeddings"},
                                                       {"blocks.1.norm1", "layer norm 1"},
                                                       {"blocks.0.attn.qkv", "attention"},
                                                       {"blocks.0.attn.drop", "attention"},
                                                       {"blocks.0.attn.residual", "residual 1"},
                                                       {"blocks.1.ls1", "residual 1"},
                                                       {"grad/blocks.1.ls2.gamma", "residual 2"},
                                                       {"blocks.1.mlp.fc2.dx", "MLP"},
                                                       {"blocks.1.mlp.drop1", "MLP"},
                                                       {"blocks.0.mlp.residual", "residual 2"},
                                                       {"norm", "last layer norm"},
                                                       {"head", "pooling and head"},
                                                       {"head_dist", "pooling and head"},
                                                       {"loss.share", "loss"},
                                                       {"distill.share", "loss"},
                                                       {"student.dx", "loss"},
                                                       {"loss_scale", "loss"}};
  const Program program = recorded_with_everything();
  for (const auto& [node, part] : parts) EXPECT_EQ(row_with(program, node, ProfileBy::kPart), part) << node;
  const std::pair<const char*, const char*> steps[] = {
      {"grad/blocks.1.attn.q_norm.weight", "qkv"},
      {"grad/blocks.1.attn.k_norm.weight", "qkv"},
      {"blocks.0.attn.qkv.bias", "qkv"},
      {"blocks.0.attn.softmax", "scores + softmax + context"},
      {"blocks.0.attn.proj.dw", "projection"},
      {"blocks.0.attn.drop", "attention"},
      {"blocks.1.mlp.gelu.dx", "GELU"},
      {"blocks.1.mlp.drop2", "MLP"}};
  for (const auto& [node, step] : steps) EXPECT_EQ(row_with(program, node, ProfileBy::kFine), step) << node;
  EXPECT_EQ(operation_of("blocks.11.mlp.fc1"), "blocks.*.mlp.fc1");
  EXPECT_EQ(operation_of("fc1"), "fc1");
}

TEST(Profile, RowsKeepEveryFlopWhateverTheGrouping) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 3, config.classes = 5;
  const ExecutionPlan plan = plan_inference(config, {.threads = 1});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (const ProfileBy by : {ProfileBy::kPart, ProfileBy::kOperation, ProfileBy::kNode}) {
    double flops = 0, seconds = 0;
    for (const ProfileRow& row : profile_rows(plan, times, by)) flops += row.flops, seconds += row.seconds;
    EXPECT_DOUBLE_EQ(flops, plan.program.cost().flops);
    EXPECT_NEAR(seconds, 0.1 * static_cast<double>(times.size()), 1e-9);
  }
  EXPECT_EQ(profile_rows(plan, times, ProfileBy::kNode).size(), times.size());
  EXPECT_NE(profile_table(profile_rows(plan, times, ProfileBy::kPart), {.gflops = 10}, ProfileColumns::kParts)
                .find("100.00 %"),
            std::string::npos);
}

TEST(Profile, PartsTellTheTimeInOneLayerAndWhyKernelsDeclined) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 3, config.classes = 5;
  ExecutionPlan plan = plan_inference(config, {.threads = 1, .fuse = false});
  std::vector<NodeTime> times(plan.program.nodes.size(), {0.5, 5});
  for (size_t i = 0; i < times.size(); ++i)  // the last block does less
    if (plan.program.nodes[i].name.starts_with("blocks.2.")) times[i].seconds = 0.1;
  for (NodeChoice& choice : plan.choices) choice.declined = {"fast: too small"};
  for (const ProfileRow& row : profile_rows(plan, times, ProfileBy::kPart)) {
    const bool in_blocks =
        row.name == "attention" || row.name == "MLP" || row.name.ends_with(" 1") || row.name.ends_with(" 2");
    EXPECT_EQ(row.layers(), in_blocks ? 3 : 0) << row.name;
    if (row.name == "layer norm 1") {
      EXPECT_DOUBLE_EQ(row.seconds_per_layer(), 0.1);
    }
    EXPECT_EQ(row.declined, std::vector<std::string>{"fast: too small"}) << row.name;
  }
  const std::vector<std::string> lines = declined_lines(plan);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "blocks.*.mlp.fc1: kernel fast declined: too small"), 1);
}

std::set<std::string> names_of(const std::vector<ProfileRow>& rows) {
  std::set<std::string> names;
  for (const ProfileRow& row : rows) names.insert(row.name);
  return names;
}

TEST(Profile, FineRowsNameEveryStepThatAKernelComputes) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 2, config.classes = 5;
  const ExecutionPlan apart = plan_inference(config, {.threads = 1, .fuse = false});
  const std::vector<NodeTime> times(apart.program.nodes.size(), {0.5, 5});
  const std::set<std::string> names = names_of(profile_rows(apart, times, ProfileBy::kFine));
  for (const char* step :
       {"embeddings", "layer norm 1", "qkv", "scores + softmax + context", "projection", "residual 1",
        "layer norm 2", "fc1", "GELU", "fc2", "residual 2", "last layer norm"})
    EXPECT_TRUE(names.contains(step)) << step;
  const ExecutionPlan fused = plan_inference(config, {.threads = 1});
  const std::vector<NodeTime> fewer(fused.program.nodes.size(), {0.5, 5});
  const std::set<std::string> joined = names_of(profile_rows(fused, fewer, ProfileBy::kFine));
  EXPECT_TRUE(std::any_of(joined.begin(), joined.end(), [](const std::string& name) {
    return name.find("layer norm 1 + qkv") != std::string::npos;
  }));
}

// A step that runs a program twice has twice its times and FLOPs.
TEST(Profile, RowsAreThoseOfOneStep) {
  VitConfig config = small_config();
  config.mlp = 16, config.depth = 1, config.classes = 5;
  const ExecutionPlan plan = plan_inference(config, {.threads = 1});
  const std::vector<NodeTime> times(plan.program.nodes.size(), {0.6, 6});
  const ProfileRow once = total_of(profile_rows(plan, times, ProfileBy::kPart));
  const ProfileRow twice = total_of(profile_rows({{plan, times, 3}}, ProfileBy::kPart));
  EXPECT_NEAR(twice.seconds, 2 * once.seconds, 1e-12);
  EXPECT_DOUBLE_EQ(twice.flops, 2 * once.flops);
}

TEST(Profile, TheBoundIsTheSlowerOfComputeAndMemory) {
  const ProfileRow row{.name = "", .kind = "", .kernel = "", .flops = 1e9, .bytes = 1e9};
  EXPECT_DOUBLE_EQ(row.bound_seconds({.gflops = 10, .gbps = 100}), 0.1);
  EXPECT_FALSE(row.bound_by_memory({.gflops = 10, .gbps = 100}));
  EXPECT_DOUBLE_EQ(row.bound_seconds({.gflops = 100, .gbps = 4}), 0.25);
  EXPECT_TRUE(row.bound_by_memory({.gflops = 100, .gbps = 4}));
  EXPECT_EQ(row.bound_seconds({}), 0);
}

Profile made_up(double seconds) {
  ProfileRow attention{
      .name = "attention", .kind = "", .kernel = "", .seconds = seconds, .flops = 1e9, .bytes = 1e6};
  attention.layer_seconds = {seconds / 2, seconds / 2}, attention.layer_numbers = {4, 5};
  Profile profile{.what = "a <model>", .device = "cpu", .backend = "cpu", .training = false, .batch = 2};
  profile.peaks = {100, 20}, profile.seconds = spread_of({seconds, seconds, seconds});
  profile.parts = profile.fine = profile.operations = {attention};
  return profile;
}

TEST(Sweep, AxesMultiplyAndTheLastRunsFastest) {
  const Sweep sweep =
      run_sweep(parse_sweeps({"threads=1,2", "parallel=heads,rows+softmax,all"}),
                [](const SweepValues& values) { return made_up(values[0] == "1" ? 0.2 : 0.1); });
  ASSERT_EQ(sweep.rows.size(), 6u);
  EXPECT_EQ(sweep.rows[1].values, (SweepValues{"1", "rows+softmax"}));
  EXPECT_EQ(sweep.rows[3].values, (SweepValues{"2", "heads"}));
  EXPECT_NE(to_text(sweep).find("2.00 x"), std::string::npos) << to_text(sweep);
  const Figure figure = sweep_figure(sweep);
  ASSERT_EQ(figure.legend.size(), 4u) << "three kinds and the ideal";
  EXPECT_EQ(figure.legend[3].name, "ideal");
  EngineOptions engine;
  apply(sweep.axes, sweep.rows[1].values, "cpu", engine);
  EXPECT_EQ(engine.threads, 1);
  EXPECT_FALSE(engine.parallel_heads);
  EXPECT_TRUE(engine.parallel_rows && engine.parallel_softmax);
}

TEST(Sweep, WhatCannotBeSweptIsRefused) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"threads"},
                                             {"threads="},
                                             {"threads=0"},
                                             {"threads=1,,2"},
                                             {"threads=many"},
                                             {"colour=1"},
                                             {"parallel=columns"},
                                             {"threads=1", "threads=2"}})
    EXPECT_THROW(parse_sweeps(bad), Error) << bad[0];
  std::string many = "threads=1";
  for (int i = 2; i <= 300; ++i) many += "," + std::to_string(i);
  EXPECT_THROW(parse_sweeps({many}), Error);
}

ProfileResult made_up_result() {
  ProfileResult result{
      .model = "<b>", .dtype = "f32", .own = made_up(0.2), .beside = made_up(0.3), .seed = {}};
  ProfileRow mlp = result.own.parts[0];
  mlp.name = "mlp", mlp.seconds /= 3, mlp.flops *= 2, mlp.layer_seconds = {0.02, 0.04};
  for (std::vector<ProfileRow>* rows : {&result.own.parts, &result.own.fine, &result.own.operations})
    rows->push_back(mlp);
  result.own.ranks = {result.own.parts, result.own.parts};
  result.sweep =
      run_sweep(parse_sweeps({"parallel=heads,all"}), [](const SweepValues&) { return made_up(0.1); });
  return result;
}

TEST(ProfilePage, EveryPartIsTheStoredOne) {
  const std::string page = to_file(made_up_result(), "profile.html");
  expect_stored("golden/told/profile.txt", body_of(page, "<section id=\"machine\">"));
}

TEST(ProfilePage, IsWellFormedAndHasEverySection) {
  const ProfileResult result = made_up_result();
  const std::string page = to_file(result, "profile.html");
  EXPECT_TRUE(to_file(result, "profile.svg").starts_with("<svg "));
  EXPECT_EQ(page_fault(page), "");
  for (const char* id :
       {"roofline", "layers", "sweep", "ranks", "parts", "steps", "operations", "beside", "machine"})
    EXPECT_NE(page.find(std::string("<section id=\"") + id + "\">"), std::string::npos) << id;
  EXPECT_EQ(page.find("<b>, "), std::string::npos);
  for (const char* layer : {">4</text>", ">5</text>"})
    EXPECT_NE(page.find(layer), std::string::npos) << layer;
}

}  // namespace
}  // namespace vitrail
