// Meshes of a cluster, planned and simulated: the advice, what is refused, and a hundred thousand devices.
#include "simulate/cluster_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

const std::vector<std::filesystem::path> kPlaces = {VT_SOURCE_DIR "/configs/networks"};

PlanTarget h200() {
  return file_target(read_device_file(VT_SOURCE_DIR "/configs/devices/h200.json"), 0, "");
}

TrainConfig config_of(const std::string& arch, int64_t micro_batch) {
  TrainConfig config;
  config.model.arch = arch;
  config.train.micro_batch = micro_batch;
  config.train.dtype = ComputeType::kBF16;
  return config;
}

ClusterSettings settings_of(const char* cluster, int64_t nodes, int64_t devices) {
  ClusterSettings settings;
  settings.cluster = cluster, settings.nodes = nodes, settings.devices = devices;
  return settings;
}

ClusterPlan planned(const char* mesh, const ClusterSettings& settings, TrainConfig config) {
  if (*mesh) take_mesh(mesh, config.mesh);
  return plan_cluster(settings, kPlaces, {config, 10, h200(), *mesh == 0});
}

TEST(ClusterPlan, PartsOfAStepAddUp) {
  for (const char* mesh : {"dp=16", "dp=16,zero=1", "dp=16,zero=3", "dp=4,tp=4", "dp=4,tp=2,sp=2"}) {
    const ClusterPlan plan =
        planned(mesh, settings_of("dgx-a100", 2, 8), config_of("vit_base_patch16_224", 16));
    const ClusterRow& row = plan.rows.at(0);
    EXPECT_NEAR(row.step_s, row.compute_s + row.exposed_s + row.bubble_s + row.slowest_s, 1e-9 * row.step_s)
        << mesh;
    EXPECT_GT(row.exposed_s + row.hidden_s, 0) << mesh;
    EXPECT_GT(row.efficiency, 0.02) << mesh;
    EXPECT_LT(row.efficiency, 1) << mesh;
  }
}

// One device exchanges nothing and is its own measure; a slower network never makes a step faster.
TEST(ClusterPlan, NetworksOrderSteps) {
  const TrainConfig config = config_of("deit_small_patch16_224", 16);
  const ClusterRow one = planned("dp=1", settings_of("dgx-a100", 1, 1), config).rows.at(0);
  EXPECT_NEAR(one.efficiency, 1, 1e-9);
  EXPECT_EQ(one.exposed_s, 0);
  double last = one.step_s;
  for (const char* cluster : {"dgx-h100", "dgx-a100", "dgx-2", "cloud-t4", "ethernet-1g"}) {
    const double now = planned("dp=8", settings_of(cluster, 8, 1), config).rows.at(0).step_s;
    EXPECT_GT(now, last) << cluster;
    last = now;
  }
}

TEST(ClusterPlan, FollowsAMeasuredDevice) {
  ClusterSettings settings = settings_of("t4-vaughan", 1, 8);
  settings.one_device_s = 2.5;
  const TrainConfig config = config_of("deit_small_patch16_224", 16);
  // A rank of several also adds up the parts of the gradients' norm.
  EXPECT_NEAR(planned("dp=8", settings, config).rows.at(0).compute_s, 2.5, 0.01);
  settings.devices = 1;
  EXPECT_NEAR(planned("dp=1", settings, config).rows.at(0).compute_s, 2.5, 1e-9);
  settings.one_device_s = -1;
  try {
    planned("dp=1", settings, config);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("--one-device-s is -1; expected 0 to 1000000"), std::string::npos);
    EXPECT_NE(error.hint().find("seconds of a measured update"), std::string::npos) << error.what();
  }
}

TEST(ClusterPlan, ComparesEveryMeshAtOneBatch) {
  const TempFolder folder;
  ClusterSettings settings = settings_of("dgx-a100", 2, 4);
  settings.trace = (folder.path() / "trace.json").string();
  const ClusterPlan plan = planned("", settings, config_of("deit_tiny_patch16_224", 8));
  ASSERT_NE(plan.best(), nullptr);
  ASSERT_NE(plan.runner_up(), nullptr);
  EXPECT_EQ(plan.batch, 64);
  std::set<std::string> meshes;
  for (const ClusterRow& row : plan.rows) {
    if (!row.refused.empty()) continue;
    EXPECT_EQ(row.micro_batch * row.accumulation * row.mesh.dp, plan.batch);
    EXPECT_GE(row.step_s, plan.best()->step_s);
    meshes.insert(to_string(mesh_of(row.mesh, 0)));
  }
  EXPECT_EQ(meshes.size(), 1u);  // three heads are shared by no two or four devices of a node
  EXPECT_NE(to_text(plan).find("Runner-up"), std::string::npos);
  const auto json = to_json(plan);
  EXPECT_EQ(json["meshes"].size(), plan.rows.size());
  EXPECT_GT(json["failures"]["intervals"]["best"]["effective"], 0.5);
  EXPECT_GT(std::filesystem::file_size(settings.trace), 1000u);
}

// 12 heads on 2 nodes of 4: tp and sp share them out within a node, in every way that divides.
TEST(ClusterPlan, MeshesHaveSequenceParallelismToo) {
  VitConfig model;
  std::set<std::string> found;
  for (const MeshConfig& mesh : sensible_meshes({}, model, 2, 4, false)) {
    EXPECT_EQ(mesh.dp * mesh.tp * mesh.sp, 8);
    EXPECT_EQ(mesh.pp, 1);
    if (mesh.zero == 0) found.insert(to_string(mesh_of(mesh, 0)));
  }
  EXPECT_EQ(found, (std::set<std::string>{"dp=8", "dp=4 tp=2", "dp=2 tp=4", "dp=4 sp=2", "dp=2 sp=4",
                                          "dp=2 tp=2 sp=2"}));
}

// Three divides the heads and the world, but not the four devices of a node.
TEST(ClusterPlan, NoGroupThatSharesHeadsLiesAcrossNodes) {
  for (const MeshConfig& mesh : sensible_meshes({}, VitConfig(), 3, 4, false))
    EXPECT_EQ(4 % (mesh.tp * mesh.sp), 0) << to_string(mesh_of(mesh, 0));
}

TEST(ClusterPlan, SimulatesAHundredThousandDevices) {
  const ClusterPlan plan = planned("dp=12500,tp=8,zero=3", settings_of("dgx-h100", 12500, 8),
                                   config_of("vit_giant_patch14_224", 8));
  const ClusterRow& row = plan.rows.at(0);
  EXPECT_TRUE(row.fits);
  EXPECT_EQ(plan.batch, 100000);
  EXPECT_GT(row.step_s, row.compute_s);
}

// One device with an even share of the batch is the measure of every mesh, so that rows are ordered alike by
// images a second and by efficiency; a share of less than an image or none that is whole counts in part.
TEST(ClusterPlan, EfficiencyOrdersMeshesAsImagesASecondDo) {
  for (const int64_t batch : {8, 16, 40}) {
    TrainConfig config = config_of("vit_base_patch16_224", 0);
    config.train.batch = batch;
    const ClusterPlan plan = planned("", settings_of("dgx-h100", 2, 8), config);
    double ratio = 0;
    std::set<int64_t> micro_batches;
    for (const ClusterRow& row : plan.rows) {
      if (!row.refused.empty()) continue;
      micro_batches.insert(row.micro_batch);
      EXPECT_LT(row.efficiency, 1);
      EXPECT_EQ(row.batch, batch);
      if (ratio == 0) ratio = row.efficiency / row.images_s;
      EXPECT_NEAR(row.efficiency / row.images_s, ratio, 1e-9 * ratio) << to_string(mesh_of(row.mesh, 0));
    }
    EXPECT_GE(micro_batches.size(), 2u);
  }
}

TEST(ClusterPlan, OneDeviceIsItsOwnMeasureWithSeveralMicroBatchesToo) {
  TrainConfig config = config_of("deit_tiny_patch16_224", 4);
  config.train.accumulation = 3;
  const ClusterRow row = planned("dp=1", settings_of("dgx-a100", 1, 1), config).rows.at(0);
  EXPECT_EQ(row.batch, 12);
  EXPECT_NEAR(row.efficiency, 1, 1e-9);
}

TEST(ClusterPlan, SaysTheBatchOfUnevenShares) {
  TrainConfig config = config_of("deit_tiny_patch16_224", 0);
  config.train.batch = 100;
  const ClusterPlan plan = planned("dp=32", settings_of("dgx-h100", 4, 8), config);
  EXPECT_EQ(plan.batch, 100);
  EXPECT_EQ(to_json(plan)["batch"], 100);
  EXPECT_NE(to_text(plan).find("100 images an update\n"), std::string::npos);
}

TEST(ClusterPlan, SaysWhoSharesAMicroBatch) {
  const ClusterPlan plan =
      planned("dp=4,tp=2", settings_of("dgx-h100", 1, 8), config_of("vit_base_patch16_224", 16));
  EXPECT_NE(to_text(plan).find("64 images an update, 16 of them on each of the 4 groups of 2 devices\n"),
            std::string::npos)
      << to_text(plan);
}

// The host's update and its copies are waited for, and said to be assumed.
TEST(ClusterPlan, AnOffloadIsNotFree) {
  TrainConfig config = config_of("vit_base_patch16_224", 8);
  const ClusterSettings settings = settings_of("dgx-h100", 1, 8);
  const ClusterPlan plain = planned("dp=8,zero=1", settings, config);
  EXPECT_EQ(plain.rows.at(0).host_s, 0);
  EXPECT_EQ(to_text(plain).find("Offload assumes"), std::string::npos);
  for (const Offload offload : {Offload::kOptimizer, Offload::kParameters}) {
    config.mesh.offload = offload;
    const ClusterPlan plan =
        planned(offload == Offload::kOptimizer ? "dp=8,zero=1" : "dp=8,zero=3", settings, config);
    const ClusterRow& row = plan.rows.at(0);
    EXPECT_GT(row.host_s, 0.001);
    EXPECT_NEAR(row.step_s, row.compute_s + row.exposed_s + row.bubble_s + row.slowest_s + row.host_s,
                1e-9 * row.step_s);
    EXPECT_LT(row.efficiency, plain.rows.at(0).efficiency);
    EXPECT_EQ(to_json(plan)["meshes"][0]["host_s"], row.host_s);
    EXPECT_NE(to_text(plan).find("Offload assumes 12 GB/s"), std::string::npos);
  }
}

TEST(ClusterPlan, AHundredThousandDevicesMayAllHaveOtherImages) {
  const ClusterPlan plan =
      planned("dp=100000", settings_of("dgx-h100", 12500, 8), config_of("vit_tiny_patch16_224", 8));
  EXPECT_EQ(plan.batch, 800000);
  EXPECT_EQ(plan.rows.at(0).mesh.dp, 100000);
}

TEST(ClusterPlan, SaysWhereFailuresLeaveNoProgress) {
  ClusterPlan plan = planned("dp=1", settings_of("dgx-a100", 1, 1), config_of("deit_tiny_patch16_224", 2));
  ASSERT_TRUE(plan.failures);
  EXPECT_EQ(to_text(plan).find("No progress"), std::string::npos);
  EXPECT_TRUE(to_json(plan)["failures"]["progress"].get<bool>());
  plan.failures->model = {.mtbf_s = 0.075, .checkpoint_s = 549, .restart_s = 300};
  EXPECT_NE(to_text(plan).find("No progress is made"), std::string::npos);
  EXPECT_EQ(to_text(plan).find("time that counts"), std::string::npos);
  EXPECT_FALSE(to_json(plan)["failures"]["progress"].get<bool>());
}

TEST(ClusterPlan, NamesWhatCannotBe) {
  const TrainConfig config = config_of("deit_small_patch16_224", 16);
  const auto message = [&](const char* mesh, const ClusterSettings& settings) -> std::string {
    try {
      planned(mesh, settings, config);
      return "";
    } catch (const Error& error) {
      return std::string(error.kind() == ErrorKind::kConfig ? "config: " : "data: ") + error.message();
    }
  };
  EXPECT_NE(message("dp=3,tp=2", settings_of("dgx-a100", 2, 4)).find("does not make the 8 ranks"),
            std::string::npos);
  EXPECT_NE(message("dp=4,tp=4", settings_of("dgx-a100", 2, 8)).find("heads"), std::string::npos);
  EXPECT_NE(
      message("dp=4194305", settings_of("dgx-a100", 2, 4)).find("mesh.dp is 4194305: expected 0..4194304"),
      std::string::npos);
  for (const char* many : {"dp=4194304,tp=2", "dp=4194304,tp=65536,sp=65536,pp=65536"})
    EXPECT_NE(message(many, settings_of("dgx-a100", 2, 4)).find("are more than 4194304 ranks"),
              std::string::npos);
  EXPECT_NE(message("dp=1", settings_of("dgx-a100", 0, 8)).find("--nodes is 0"), std::string::npos);
  EXPECT_NE(message("dp=1", settings_of("dgx-a100", 1, -4)).find("--devices is -4"), std::string::npos);
  EXPECT_NE(message("dp=1", settings_of("dgx-a100", 1, 1025)).find("--devices is 1025; expected 1 to 1024"),
            std::string::npos);
  EXPECT_EQ(message("dp=1", settings_of("no-such", 1, 1)).find("data: no network"), 0u);
}

// Six heads are shared by two ranks, three or six: by no four.
TEST(ClusterPlan, ProposesMeshesThatCutTheHeads) {
  try {
    planned("tp=16", settings_of("dgx-a100", 2, 4), config_of("deit_small_patch16_224", 16));
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.hint().starts_with("mesh.dp=4 mesh.tp=2 mesh.sp=1, or mesh.dp=8 ")) << error.hint();
  }
}

}  // namespace
}  // namespace vitrail
