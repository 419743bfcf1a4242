// The predicted curve of a scaling study: one point for each number of devices and batch.
#include <nlohmann/json.hpp>

#include "simulate/cluster_plan.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// The images of an update that one device has.
int64_t images_of_one(const RunConfig& train, int64_t world) {
  if (train.micro_batch > 0) return train.micro_batch * std::max<int64_t>(1, train.accumulation);
  return train.batch > 0 ? std::max<int64_t>(1, train.batch / world) : 64;
}

struct PointsOf {
  const ClusterSettings& settings;
  const std::vector<std::filesystem::path>& places;
  const ClusterRun& run;

  double update_s(int64_t ranks, int64_t images) const {
    ClusterSettings one = settings;
    one.trace.clear();
    one.points.clear();
    one.devices = std::min(ranks, settings.devices);
    one.nodes = ranks / one.devices;
    ClusterRun alone = run;
    alone.every_mesh = false;
    MeshConfig& mesh = alone.config.mesh;
    mesh.dp = ranks;
    mesh.tp = mesh.sp = mesh.pp = 1;
    if (ranks == 1) mesh.zero = 0;
    RunConfig& train = alone.config.train;
    train.micro_batch = images;
    train.accumulation = 1;
    train.batch = 0;
    return plan_cluster(one, places, alone).rows.at(0).step_s;
  }

  void add(int64_t ranks, int64_t images, ordered_json& list) const {
    const ModelSettings& model = run.config.model;
    // The name is a study's: weights go by the name of their folder.
    const std::string name =
        model.arch.empty() ? std::filesystem::path(model.init).filename().string() : model.arch;
    const double seconds = update_s(ranks, images);
    // A study names how ranks talk; the network stands for either way within a node.
    for (const char* transport : {"threads", "mpi", "nodes"}) {
      const bool several = ranks > settings.devices;
      if (several != (std::string_view(transport) == "nodes")) continue;
      list.push_back({{"model", name},
                      {"device", run.target.device.backend},
                      {"transport", transport},
                      {"ranks", ranks},
                      {"batch", images},
                      {"update_s", seconds}});
    }
  }
};
}  // namespace

ordered_json predicted_points(const ClusterSettings& settings,
                              const std::vector<std::filesystem::path>& places, const ClusterRun& run) {
  ordered_json list = ordered_json::array();
  const PointsOf points{settings, places, run};
  const int64_t world = settings.nodes * settings.devices;
  const int64_t images = images_of_one(run.config.train, world);
  for (int64_t ranks = 1; ranks <= world; ranks *= 2) {
    if (ranks > settings.devices && ranks % settings.devices != 0) continue;
    points.add(ranks, images, list);
    // The measured update of one device holds for its own micro-batch alone.
    if (ranks > 1 && images % ranks == 0 && settings.one_device_s == 0)
      points.add(ranks, images / ranks, list);
  }
  return list;
}

}  // namespace vitrail
