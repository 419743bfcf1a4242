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

}  // namespace
}  // namespace vitrail
