// The tables that stand beside those of the documents, as text and JSON, and the ways to fit a batch as text.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/fit_options.h"
#include "measure/parameter_table.h"
#include "measure/seed_table.h"
#include "models/zoo.h"
#include "squeezed.h"
#include "thrown.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

// Widths of columns are not compared.
bool holds(const std::string& text, const std::string& part) {
  return squeezed(text).find(squeezed(part)) != std::string::npos;
}

TEST(ParameterText, SharesAndTotals) {
  const ParameterTable table{"vit", {{"attention", 300, 200, "f"}, {"norms", 100, std::nullopt, ""}}};
  const std::string text = to_text(table);
  EXPECT_TRUE(text.starts_with("vit\n"));
  EXPECT_TRUE(holds(text, "attention         300  75.00 %         200  f\n")) << text;
  EXPECT_TRUE(holds(text, "norms             100  25.00 %\n")) << text;
  EXPECT_TRUE(holds(text, "in all            400                  200  L (k d 3 d_h + d d + 2 d d_mlp)\n"))
      << text;
  EXPECT_EQ(to_json(table), ordered_json::parse(R"({"model": "vit", "params": 400, "document": 200, "parts": [
      {"part": "attention", "params": 300, "document": 200, "formula": "f"}, {"part": "norms", "params": 100}]})"));
  const TableOne one{{{"ResNet-18", 10'000'000, 12, 5e6, 2'000'000}}};
  EXPECT_TRUE(holds(
      to_text(one),
      "ResNet-18  10,000,000     20.00 %         12.0 M  +20.0 %                               5.00 M\n"))
      << to_text(one);
  EXPECT_EQ(to_json(one), ordered_json::parse(R"([{"model": "ResNet-18", "params": 10000000, "head": 2000000,
      "printed": 12000000.0, "calculated": 5000000.0}])"));
}

TEST(ParameterText, WhatTheDocumentPrinted) {
  const TableOne table = table_one();
  const double printed[] = {31.7, 60.5, 45.8, 84.8, 86, 307, 632};
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(table.rows[i].printed, printed[i]) << i;
  const double calculated[] = {33.3e6, 63.6e6, 46.4e6, 85.5e6};
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(table.rows[i].calculated, calculated[i]) << i;
  EXPECT_EQ(count_resnet(152).total(), 60'192'808);
  EXPECT_EQ(count_resnet(18).norms, 2 * (64 + 4 * 64 + 5 * 128 + 5 * 256 + 5 * 512));
  EXPECT_EQ(thrown_by([] { count_resnet(19); }),
            "usage: there is no ResNet-19; there are 18, 34, 50, 101 and 152");
}

SeedTimes made_seed() {
  SeedTimes seed{.cores = 2, .layers = 3, .heads = 12, .head_macs = 4e8, .output_macs = 1.4e9};
  for (const auto& [name, seconds, macs] : {std::tuple{"embeddings", 1.0, 1e8},
                                            {"layer norm 1", 0.02, 0.0},
                                            {"attention", 38.0, 6.2e9},
                                            {"residual 1", 0.001, 0.0},
                                            {"layer norm 2", 0.02, 0.0},
                                            {"MLP", 9.0, 9e8},
                                            {"residual 2", 0.001, 0.0},
                                            {"last layer norm", 0.02, 0.0}})
    seed.rows.push_back({name, seconds, macs});
  return seed;
}

TEST(SeedText, RowsAndSentences) {
  const SeedTimes seed = made_seed();
  const std::string text = seed_explanation(seed);
  for (const char* part : {"multiplies at 100 MMAC/s",
                           "Each of 12 heads projects 768 columns to 768 where a ViT's projects to 64: 0.400 "
                           "GMAC a head, 24.0 s for all on 2 cores.",
                           "1.400 GMAC, 14.0 s."})
    EXPECT_TRUE(holds(text, part)) << part << text;
  const ordered_json json = to_json(seed);
  EXPECT_EQ(json["cores"], 2);
  EXPECT_EQ(json["layers"], 3);
  EXPECT_EQ(json["mmacs_per_s"], 100);
  EXPECT_EQ(json["predicted_attention_s"], 38);
  const double published[] = {1.190, 0.024, 21.220, 0.001, 0.024, 9.602, 0.002, 0.0231};
  ASSERT_EQ(json["rows"].size(), 8u);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(json["rows"][i]["published_s"], published[i]) << i;
  EXPECT_EQ(json["rows"][5]["seconds"], 9);
  EXPECT_EQ(json["rows"][5]["macs"], 9e8);
  ProfileRow embeddings{.name = "embeddings", .kind = "", .kernel = ""};
  embeddings.seconds = 0.01, embeddings.flops = 2e8;
  const std::string table = seed_table(seed, {embeddings});
  EXPECT_TRUE(
      holds(table, "embeddings           1.19 s         1.00 s  0.100     100  10.0 ms  0.100   100 x\n"))
      << table;
  EXPECT_TRUE(holds(table, "layer norm 1        0.024 s        20.0 ms                       -\n")) << table;
}

TEST(SeedText, OnlyTheBaseModelStandsBeside) {
  VitConfig base = find_architecture("vit_base_patch16_224").config;
  EXPECT_EQ(thrown_by([&] { require_like_seed(base, 1); }), "nothing");
  EXPECT_TRUE(
      thrown_by([&] {
        require_like_seed(base, 2);
      }).ends_with(" with batch 2 | vitrail profile -m vit_base_patch16_224 --no-fuse --beside seed-000"));
  for (const auto change : std::initializer_list<void (*)(VitConfig&)>{
           [](VitConfig& c) { c.width = 384; }, [](VitConfig& c) { c.heads = 6; },
           [](VitConfig& c) { c.mlp = 1536; }, [](VitConfig& c) { c.image_height = 240; }}) {
    VitConfig other = base;
    change(other);
    EXPECT_TRUE(thrown_by([&] {
                  require_like_seed(other, 1);
                }).starts_with("usage: seed-000 is ViT-Base at 224 px with batch 1; this is "));
  }
}

FitOption made_way(double update_s) {
  FitOption way;
  way.config.train.batch = 256, way.config.train.micro_batch = 64, way.config.train.accumulation = 4;
  way.config.mesh.dp = 1;
  way.peak_bytes = 3 << 20, way.update_s = update_s;
  return way;
}

TEST(FitText, TellsWaysAndTheirNotes) {
  FitOptions options{.device = "T4", .basis = "by rule", .available_bytes = 4 << 20, .batch = 256};
  options.plans = 7;
  options.rows = {made_way(0.5)};
  std::string text = to_text(options);
  for (const char* part :
       {"wanted   256 images an update\n", "on       T4, 4.00 MiB available\n",
        "planned  7 steps, 1 way to fit, the fastest first\n", "times    by rule\n",
        "f32    none               4 x 64  none     3.00 MiB               500 ms    512\n"})
    EXPECT_TRUE(holds(text, part)) << part << text;
  EXPECT_FALSE(holds(text, "Offload assumes") || holds(text, "slower ones") || holds(text, "ZeRO"));
  EXPECT_FALSE(holds(text, "What ranks exchange")) << "one rank exchanges nothing";
  options.rows[0].config.mesh.offload = Offload::kOptimizer, options.rows[0].host_bytes = 2 << 20;
  EXPECT_TRUE(holds(to_text(options), "2.00 MiB")) << to_text(options);
  EXPECT_TRUE(holds(to_text(options), "Offload assumes ")) << to_text(options);
  options.ranks = 2, options.rows[0].config.mesh.dp = 2, options.rows[0].config.mesh.zero = 3;
  text = to_text(options);
  EXPECT_TRUE(holds(text, "on       2 x T4, 4.00 MiB available on each\n")) << text;
  EXPECT_TRUE(holds(text, "  optimizer  dp=2     3  3.00 MiB     2.00 MiB  500 ms    512\n")) << text;
  EXPECT_TRUE(holds(text, "What ranks exchange is not in these times: --cluster NETWORK has it.\n"));
  EXPECT_EQ(
      settings_of(options.rows[0]),
      ordered_json::parse(R"({"train": {"batch": 256, "micro_batch": 64, "dtype": "f32", "recompute": "none"},
                                    "mesh": {"dp": 2, "tp": 1, "sp": 1, "zero": 3, "offload": "optimizer"}})"));
  EXPECT_FALSE(settings_of(made_way(1)).contains("mesh"));
  options.network = true;
  EXPECT_FALSE(holds(to_text(options), "What ranks exchange"));
  options.rows.assign(24, made_way(1));
  EXPECT_FALSE(holds(to_text(options), "slower ones"));
  options.rows.assign(27, made_way(1));
  EXPECT_TRUE(holds(to_text(options), "and 3 slower ones (--json has them)\n"));
  const ordered_json json = to_json(options);
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, double>>{
           {"batch", 256}, {"ranks", 2}, {"memory_available", 4 << 20}, {"plans", 7}})
    EXPECT_EQ(json[key], value) << key;
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["exchange_timed"], true);
  ordered_json way = json["ways"][26];
  way.erase("settings");
  EXPECT_EQ(way,
            ordered_json::parse(R"({"dtype": "f32", "recompute": "none", "micro_batch": 64, "accumulation": 4,
      "offload": "none", "mesh": "dp=1", "zero": 0, "memory": 3145728, "host_memory": 0, "update_s": 1.0, "images_s": 256.0})"));
  options.rows.clear(), options.ranks = 1, options.least = made_way(0), options.least->peak_bytes = 6 << 20;
  text = to_text(options);
  EXPECT_TRUE(holds(text, "planned  7 steps, none fits\n"));
  EXPECT_TRUE(
      text.ends_with("No way fits. Nearest: f32, none, 4 x 64, none (dtype, recompute, micro-batches, "
                     "offload) needs 6.00 MiB, 2.00 MiB more.\n"))
      << text;
  EXPECT_FALSE(to_json(options)["nearest"].contains("update_s"));
}

TEST(FitText, TheNearestHasItsMeshAndAnOffloadItsRates) {
  FitOptions options{.device = "T4", .basis = "by rule", .available_bytes = 4 << 20, .batch = 256};
  options.ranks = 2, options.least = made_way(0);
  options.least->config.mesh.dp = 2, options.least->config.mesh.zero = 3;
  options.least->peak_bytes = 6 << 20;
  EXPECT_TRUE(to_text(options).ends_with(
      "No way fits. Nearest: f32, none, 4 x 64, none, dp=2, 3 (dtype, recompute, micro-batches, offload, "
      "mesh, ZeRO) needs 6.00 MiB, 2.00 MiB more.\n"))
      << to_text(options);
  EXPECT_EQ(to_json(options)["target"], "T4");
  EXPECT_EQ(to_json(options)["basis"], "by rule");
  options.rows = {made_way(1)};
  options.rows[0].config.mesh.offload = Offload::kParameters;
  EXPECT_TRUE(holds(to_text(options),
                    "Offload assumes 12 GB/s between host and device and 20 GB/s for the host's updates.\n"))
      << to_text(options);
}

TEST(FitText, TheWantedBatchHasItsLimits) {
  FitRequest request;
  request.target.file = DeviceFile();
  for (const int64_t batch : {int64_t{0}, (int64_t{1} << 24) + 1}) {
    request.batch = batch;
    EXPECT_EQ(thrown_by([&] { find_fit_options(request); }),
              "config: --wanted-batch is " + std::to_string(batch) +
                  "; expected 1 to 16777216 | --wanted-batch 512");
  }
}

}  // namespace
}  // namespace vitrail
