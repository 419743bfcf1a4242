// A training step on a cluster that need not be there: every mesh asked for is planned as a run would be, one
// representative rank of each kind, and simulated on the network. Prints nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "plan/target.h"
#include "simulate/failures.h"
#include "simulate/simulator.h"
#include "train/run_plan.h"

namespace vitrail {

// A cluster as it is asked for.
struct ClusterSettings {
  std::string cluster;
  int64_t nodes = 1, devices = 8;
  double one_device_s = 0;
  std::string trace, points;

  template <typename Self, typename V>
  static void fields(Self& c, V&& v) {
    v("cluster", c.cluster,
      "simulate a training step on this network (dgx-a100, or a file) of devices like --target, for every "
      "mesh "
      "that is sensible or for --mesh");
    v("nodes", c.nodes, "nodes of the cluster");
    v("devices", c.devices, "devices of a node");
    v("one-device-s", c.one_device_s,
      "seconds of a measured update of one device with the same micro-batches, which all times follow; 0: as "
      "predicted for --target");
    v("trace", c.trace, "write the simulated step of the best mesh as a timeline for Chrome or Perfetto");
    v("points", c.points,
      "write the updates of 1, 2, 4, ... of the devices with dp alone, as scale --predicted draws them");
  }
};
std::vector<FieldSpec> cluster_fields();

// The run that is planned, on any number of devices.
struct ClusterRun {
  TrainConfig config;  // its mesh is the only one, or stands for all that are sensible
  std::optional<int64_t> classes;
  PlanTarget target;  // with a device file
  bool every_mesh = false;
};

struct ClusterRow {
  MeshConfig mesh;
  int64_t batch = 0;  // images of an update
  int64_t micro_batch = 0, accumulation = 0;
  std::string refused;  // why this mesh cannot run; empty: it can
  size_t peak_bytes = 0;
  bool fits = false;
  // The parts of an update, in seconds; they add up to step_s.
  double compute_s = 0, exposed_s = 0, bubble_s = 0, slowest_s = 0;
  double host_s = 0;  // waiting for what an offload has the host do and copy, as host_seconds() assumes it
  double step_s = 0, hidden_s = 0;
  double images_s = 0;
  // Efficiency is against as many devices that exchange nothing, each with an even share of the batch: its
  // seconds there (OneDevice::share_seconds) by step_s. All rows of a plan have the same share, so both order
  // them alike.
  double efficiency = 0;
  std::map<std::pair<CollectiveKind, unsigned>, ExchangeTimes> exchanges = {};
  std::vector<SimulatedSpan> spans = {};
  std::vector<int> span_ranks = {};  // the rank of each simulated one

  bool runs() const { return refused.empty() && fits; }
};

// Says what failures make of the advised mesh.
struct ClusterFailures {
  FailureModel model;
  double saved_every_s = 0;  // by train.save_minutes
};

struct ClusterPlan {
  std::string network, device;
  int64_t nodes = 1, devices = 1, batch = 0;
  size_t available_bytes = 0;
  double slowest = 1;            // expected_slowest() of all devices
  double one_device_s = 0;       // the measured update that times follow; 0: predicted
  std::vector<ClusterRow> rows;  // the fastest that runs first
  std::optional<ClusterFailures> failures;

  const ClusterRow* best() const { return !rows.empty() && rows[0].runs() ? &rows[0] : nullptr; }
  // The fastest that shares out the model in another way.
  const ClusterRow* runner_up() const;
};

// Throws Error(kConfig) where no device file says how fast the devices of a cluster are.
void require_speed(bool known);

// Looks for networks by name in `places`. Throws Error(kConfig) when the mesh of the run is not one of the
// devices, or cannot run.
ClusterPlan plan_cluster(const ClusterSettings& settings, const std::vector<std::filesystem::path>& places,
                         const ClusterRun& run);

// The predicted updates of 1, 2, 4, ... of the devices, each with as many images as the run has on one (weak
// scaling) and with an even part of these (strong scaling), as a list that `scale --predicted` reads.
nlohmann::ordered_json predicted_points(const ClusterSettings& settings,
                                        const std::vector<std::filesystem::path>& places,
                                        const ClusterRun& run);

// The meshes that are worth asking for: tp and sp within a node and by whole heads, pp where the device
// allows it, each ZeRO stage.
std::vector<MeshConfig> sensible_meshes(const MeshConfig& asked, const VitConfig& model, int64_t nodes,
                                        int64_t devices, bool pipelines);

nlohmann::ordered_json to_json(const ClusterPlan& plan);
std::string to_text(const ClusterPlan& plan);
// The simulated step of a row as events for chrome://tracing and Perfetto.
nlohmann::ordered_json trace_of(const ClusterRow& row);

}  // namespace vitrail
