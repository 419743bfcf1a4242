// The points that a cluster's plan writes are those that a scaling study reads.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "measure/study/study.h"
#include "simulate/cluster_plan.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

TEST(PredictedPoints, AStudyReadsWhatAClusterWrites) {
  const TempFolder folder;
  ClusterSettings settings;
  settings.cluster = "dgx-a100", settings.nodes = 2, settings.devices = 4;
  settings.points = (folder.path() / "points.json").string();
  TrainConfig config;
  config.model.arch = "deit_tiny_patch16_224";
  config.train.micro_batch = 16;
  take_mesh("dp=8", config.mesh);
  const PlanTarget target = file_target(read_device_file(VT_SOURCE_DIR "/configs/devices/h200.json"), 0, "");
  const ClusterPlan plan = plan_cluster(settings, {VT_SOURCE_DIR "/configs/networks"}, {config, 10, target});
  const std::vector<PredictedPoint> points = read_predicted(settings.points);
  // Two transports on 1, 2 and 4 devices of a node, one on two nodes; both scalings where there are several.
  EXPECT_EQ(points.size(), 2u + 4u + 4u + 2u);
  std::set<std::pair<int64_t, int64_t>> found;
  for (const PredictedPoint& p : points) {
    found.emplace(p.ranks, p.batch);
    EXPECT_EQ(p.model, "deit_tiny_patch16_224");
    EXPECT_EQ(p.device, "cuda");
    EXPECT_EQ(p.transport == "nodes", p.ranks == 8);
    if (p.ranks == 8 && p.batch == 16) {
      EXPECT_DOUBLE_EQ(p.update_s, plan.rows.at(0).step_s);
    }
  }
  EXPECT_EQ(found, (std::set<std::pair<int64_t, int64_t>>{
                       {1, 16}, {2, 16}, {2, 8}, {4, 16}, {4, 4}, {8, 16}, {8, 2}}));
}

// The images of one device: a share of the batch where no micro-batch is given; with a measured update of one
// device there are no other micro-batches.
TEST(PredictedPoints, StartFromTheImagesOfOneDevice) {
  ClusterSettings settings;
  settings.cluster = "dgx-a100", settings.nodes = 1, settings.devices = 4;
  TrainConfig config;
  config.model.arch = "deit_tiny_patch16_224";
  config.train.batch = 32;
  const PlanTarget target = file_target(read_device_file(VT_SOURCE_DIR "/configs/devices/h200.json"), 0, "");
  using Points = std::set<std::pair<int64_t, int64_t>>;
  const auto found = [&] {
    Points all;
    for (const auto& p :
         predicted_points(settings, {VT_SOURCE_DIR "/configs/networks"}, {config, 10, target}))
      all.emplace(p["ranks"].get<int64_t>(), p["batch"].get<int64_t>());
    return all;
  };
  EXPECT_EQ(found(), (Points{{1, 8}, {2, 8}, {2, 4}, {4, 8}, {4, 2}}));
  config.train.batch = 0, config.train.micro_batch = 3, config.train.accumulation = 2;
  EXPECT_EQ(found(), (Points{{1, 6}, {2, 6}, {2, 3}, {4, 6}})) << "six do not divide by four";
  settings.one_device_s = 1;
  EXPECT_EQ(found(), (Points{{1, 6}, {2, 6}, {4, 6}}));
}

}  // namespace
}  // namespace vitrail
