// Ways to make a wanted batch fit: every one that is listed fits when it is planned as a run, the list is by
// predicted time, and measures that nothing needs are not drawn.
#include "measure/fit_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "backend/registry.h"
#include "base/error.h"
#include "source_root.h"
#include "train/run_plan.h"

namespace vitrail {
namespace {

PlanTarget device(const char* name, size_t available) {
  PlanTarget target =
      file_target(read_device_file(std::string(VT_SOURCE_DIR "/configs/devices/") + name + ".json"), 0, "");
  target.available_bytes = available;
  return target;
}

FitRequest request_of(const char* name, size_t available, int64_t batch, const char* mesh = "dp=1") {
  FitRequest request;
  ModelSettings& model = request.config.model;
  model.arch = "deit_tiny_patch16_224";
  model.fields.image_height = model.fields.image_width = 64;
  model.fields.depth = 4;
  model.given = {"image_height", "image_width", "depth"};
  take_mesh(mesh, request.config.mesh);
  request.classes = 10;
  request.target = device(name, available);
  request.batch = batch;
  return request;
}

constexpr size_t kMiB = size_t{1} << 20;

// Plans every rank of a way and compares with what was listed.
void expect_runs(const FitRequest& request, const FitOptions& found) {
  for (const FitOption& row : found.rows) {
    SCOPED_TRACE(settings_of(row).dump());
    const RunPlan plan(row.config, request.classes, find_backend(request.target.device.backend),
                       request.target.device);
    EXPECT_EQ(plan.peak_bytes(), row.peak_bytes);
    EXPECT_LE(plan.peak_bytes(), request.target.available_bytes);
    const RunConfig& train = plan.setup().config.train;
    EXPECT_EQ(train.micro_batch * train.accumulation * plan.setup().config.mesh.dp, request.batch);
    const int world = plan.ranks();  // the time is that of the last of them
    const RunPlan last(row.config, request.classes, find_backend(request.target.device.backend),
                       request.target.device, {world - 1, world, world});
    if (row.config.mesh.offload == Offload::kNone) {
      EXPECT_DOUBLE_EQ(row.update_s, last.update_seconds(*request.target.file));
      EXPECT_EQ(row.host_bytes, 0u);
    } else {
      EXPECT_GT(row.update_s, last.update_seconds(*request.target.file));
      EXPECT_GT(row.host_bytes, 0u);
    }
  }
}

TEST(FitOptions, WhatIsListedFitsAndTheFastestIsFirst) {
  const FitRequest request = request_of("t4", 150 * kMiB, 256);
  const FitOptions found = find_fit_options(request);
  ASSERT_GE(found.rows.size(), 4u);
  expect_runs(request, found);
  EXPECT_TRUE(std::is_sorted(found.rows.begin(), found.rows.end(),
                             [](const auto& a, const auto& b) { return a.update_s < b.update_s; }));
  std::set<std::string> types, levels;
  for (const FitOption& row : found.rows) {
    types.insert(enum_name(row.config.train.dtype)), levels.insert(enum_name(row.config.train.recompute));
    // One micro-batch more would not fit.
    TrainConfig larger = row.config;
    if (larger.train.accumulation == 1) continue;
    larger.train.accumulation /= 2, larger.train.micro_batch *= 2;
    const RunPlan plan(larger, request.classes, find_backend("cuda"), request.target.device);
    EXPECT_GT(plan.peak_bytes(), request.target.available_bytes) << settings_of(row);
  }
  EXPECT_TRUE(types.contains("f32") && types.contains("f16"));
  EXPECT_FALSE(types.contains("fp8") || types.contains("bf16"));  // which this device does not compute
  EXPECT_GE(levels.size(), 3u);
  const auto json = to_json(found);
  EXPECT_EQ(json["ways"].size(), found.rows.size());
  EXPECT_EQ(json["ways"][0]["settings"]["train"]["micro_batch"], found.rows[0].config.train.micro_batch);
  EXPECT_NE(to_text(found).find("\"micro_batch\": "), std::string::npos);
}

TEST(FitOptions, MeasuresThatNothingNeedsAreNotDrawn) {
  FitRequest request = request_of("h200", 100'000 * kMiB, 256);
  const FitOptions roomy = find_fit_options(request);
  EXPECT_EQ(roomy.rows.size(), 5u);  // one of each type
  for (const FitOption& row : roomy.rows) {
    EXPECT_EQ(row.config.train.accumulation, 1);
    EXPECT_EQ(row.config.train.recompute, Recompute::kNone);
    EXPECT_EQ(row.config.mesh.offload, Offload::kNone);
  }
  request.given = [](const std::string& key) { return key == "train.dtype"; };
  EXPECT_EQ(find_fit_options(request).rows.size(), 1u);
}

TEST(FitOptions, WhatTheCommandLineSaysIsNotDrawn) {
  FitRequest request = request_of("t4", 150 * kMiB, 256, "dp=2");
  request.config.train.recompute = Recompute::kBlock;
  request.config.mesh.offload = Offload::kOptimizer;
  request.config.mesh.zero = 1;
  for (const char* said : {"train.recompute", "mesh.offload", "mesh.zero"}) {
    request.given = [&](const std::string& key) { return key == said; };
    const FitOptions found = find_fit_options(request);
    ASSERT_FALSE(found.rows.empty()) << said;
    for (const FitOption& row : found.rows) {
      const std::string way = said + settings_of(row).dump();
      const bool kept = said == std::string("train.recompute")
                            ? row.config.train.recompute == Recompute::kBlock
                        : said == std::string("mesh.offload") ? row.config.mesh.offload == Offload::kOptimizer
                                                              : row.config.mesh.zero == 1;
      EXPECT_TRUE(kept) << way;
    }
  }
}

// The lines of a config that make the way: ZeRO is left out where there is none.
TEST(FitOptions, SettingsNameEveryStageOfZero) {
  for (int64_t stage = 0; stage <= 3; ++stage) {
    FitOption way;
    way.config.mesh.zero = stage;
    const auto json = settings_of(way);
    ASSERT_EQ(json.contains("mesh"), stage > 0) << json;
    if (stage > 0) {
      EXPECT_EQ(json["mesh"]["zero"], stage);
    }
  }
}

TEST(FitOptions, RanksShareOutWhatOneCannotHold) {
  FitRequest request = request_of("h200", 60 * kMiB, 64, "dp=5");
  EXPECT_THROW(find_fit_options(request), Error);  // neither 64 images nor three heads divide by five
  request = request_of("h200", 60 * kMiB, 96, "dp=3");
  request.given = [](const std::string& key) { return key == "train.dtype"; };
  const FitOptions found = find_fit_options(request);
  ASSERT_FALSE(found.rows.empty());
  expect_runs(request, found);
  std::set<int64_t> stages;
  for (const FitOption& row : found.rows) {
    stages.insert(row.config.mesh.zero);
    EXPECT_EQ(row.config.mesh.dp * row.config.mesh.tp * row.config.mesh.sp, 3);
  }
  EXPECT_GE(stages.size(), 2u);
  EXPECT_NE(to_text(found).find("not in these times"), std::string::npos);
  // With a network the exchange is part of the time.
  request.cluster.cluster = "cloud-t4", request.cluster.nodes = 3, request.cluster.devices = 1;
  request.networks = {VT_SOURCE_DIR "/configs/networks"};
  const FitOptions over_network = find_fit_options(request);
  ASSERT_FALSE(over_network.rows.empty());
  EXPECT_GT(over_network.rows[0].update_s, found.rows[0].update_s);
  EXPECT_EQ(to_text(over_network).find("not in these times"), std::string::npos);
}

// The cluster's plan has the host's part of an update, which is counted once.
TEST(FitOptions, AnOffloadOverANetworkTakesAsLongAsTheClusterSays) {
  FitRequest request = request_of("h200", 60 * kMiB, 3072, "dp=3");
  request.given = [](const std::string& key) { return key == "train.dtype"; };
  request.cluster.cluster = "cloud-t4", request.cluster.nodes = 3, request.cluster.devices = 1;
  request.networks = {VT_SOURCE_DIR "/configs/networks"};
  int offloads = 0;
  for (const FitOption& way : find_fit_options(request).rows) {
    if (way.config.mesh.offload == Offload::kNone) continue;
    const ClusterRun run{way.config, request.classes, request.target, false};
    const ClusterRow row = plan_cluster(request.cluster, request.networks, run).rows.at(0);
    EXPECT_GT(row.host_s, 0);
    EXPECT_DOUBLE_EQ(way.update_s, row.step_s) << settings_of(way);
    ++offloads;
  }
  EXPECT_GT(offloads, 0);
}

// Micro-batches are whole groups of images that are mixed, and the first reason is told where none can be.
TEST(FitOptions, GroupsThatAreMixedStayTogether) {
  FitRequest request = request_of("t4", 2000 * kMiB, 12);
  request.config.augment.mixup = 0.2, request.config.augment.mix_group = 4;
  request.given = [](const std::string& key) {
    return key == "train.dtype" || key == "train.recompute" || key == "mesh.offload";
  };
  const FitOptions found = find_fit_options(request);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].config.train.micro_batch, 12);
  EXPECT_EQ(found.plans, 1) << "the whole share is tried first";
  EXPECT_EQ(found.batch, 12);
  EXPECT_EQ(found.ranks, 1);
  EXPECT_FALSE(found.least) << "one fits";
  const auto refused = [&](int64_t batch, const char* mesh) {
    FitRequest other = request_of("t4", 2000 * kMiB, batch, mesh);
    other.config.augment = request.config.augment;
    other.given = request.given;
    try {
      find_fit_options(other);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(6, "dp=1"), "6 images a rank are no whole groups of 4");
  EXPECT_EQ(refused(8, "dp=2"), "accepted") << "a group for each rank";
  EXPECT_EQ(refused(8, "dp=5"), "a batch of 8 does not divide among 5 ranks with other images each");
}

TEST(FitOptions, WhatFitsNowhereSaysSoWithTheNearest) {
  const FitRequest request = request_of("t4", kMiB, 7);
  const FitOptions found = find_fit_options(request);
  EXPECT_TRUE(found.rows.empty());
  ASSERT_TRUE(found.least);
  EXPECT_GT(found.least->peak_bytes, kMiB);
  EXPECT_EQ(found.least->config.train.micro_batch, 1);
  EXPECT_NE(to_text(found).find("No way fits. Nearest: "), std::string::npos);
  const auto json = to_json(found);
  EXPECT_FALSE(json["fits"].get<bool>());
  EXPECT_EQ(json["nearest"]["memory"], found.least->peak_bytes);
  FitRequest bad = request;
  bad.batch = 0;
  try {
    find_fit_options(bad);
    ADD_FAILURE() << "no batch";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "--wanted-batch 512");
  }
  bad = request;
  bad.target.file.reset();
  EXPECT_THROW(find_fit_options(bad), Error);
}

}  // namespace
}  // namespace vitrail
