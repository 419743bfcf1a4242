// Runs the same steps by the closed forms of src/simulate and on SimGrid, which plays every message.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "simulate/simulator.h"
#include "temp_folder.h"

namespace vitrail::simgrid {

struct Shape {
  Topology topology;
  int leaf;
  double oversubscription;
  int devices = 1;  // of a node, joined by a crossbar
};
inline constexpr double kLatency = 2e-5, kHop = 1e-6, kGbps = 8, kBytesPerSecond = 1e9;

inline Network network_of(const Shape& shape) {
  Network network{.name = "test", .source = "test"};
  const NetworkLevel level{.name = "level",
                           .topology = shape.topology,
                           .latency_us = kLatency * 1e6,
                           .hop_us = kHop * 1e6,
                           .bandwidth_gbps = kGbps,
                           .leaf = static_cast<double>(shape.leaf),
                           .oversubscription = shape.oversubscription};
  network.levels = {level, level};
  if (shape.devices > 1) network.levels[0].topology = Topology::kSwitch;
  network.levels[1].links = shape.devices;  // an adapter for each device
  return network;
}

inline constexpr const char* kKinds[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"};

inline std::string line_of(const StepTask& task, const Mesh& mesh, const std::vector<Tier>& tiers,
                           Algorithm algorithm) {
  if (task.kind == StepTask::Kind::kCompute) return strf("compute %.9g\n", task.seconds);
  if (task.kind == StepTask::Kind::kWait) return strf("wait %d\n", task.slot);
  if (task.exchange == CollectiveKind::kSend || task.exchange == CollectiveKind::kReceive)
    return strf("%s %.9g %d %d %d %d\n", task.exchange == CollectiveKind::kSend ? "send" : "receive",
                task.bytes, task.started ? 1 : 0, task.slot, task.peer, task.channel);
  const GroupPlace place = place_group(tiers, mesh, task.axes);
  std::string within;
  for (const int64_t ranks : place.within) within += (within.empty() ? "" : ",") + std::to_string(ranks);
  const int stride = task.axes.has(Axis::kTensor) ? 1 : mesh.size(Axis::kTensor);
  return strf("%s %s %.9g %d %d %d %d %s\n", kKinds[static_cast<size_t>(task.exchange)], enum_name(algorithm),
              task.bytes, task.started ? 1 : 0, task.slot, stride, mesh.size(task.axes), within.c_str());
}

// `stages`: the tasks of each stage of a pipeline, or one list for all ranks.
inline double by_simgrid(const Shape& shape, const Mesh& mesh, const std::vector<TaskList>& stages,
                         const std::vector<Tier>& tiers, Algorithm algorithm) {
  const TempFolder folder;
  const std::string file = (folder.path() / "tasks").string();
  std::ofstream out(file);
  for (const TaskList& tasks : stages) {
    out << "stage\n";
    for (const StepTask& task : tasks) out << line_of(task, mesh, tiers, algorithm);
  }
  out.close();
  const std::string command = strf(
      "%s %s %d %d %g %g %g %g %d < %s 2> /dev/null", SIMGRID_ORACLE, enum_name(shape.topology), mesh.world(),
      shape.leaf, shape.oversubscription, kLatency, kHop, kBytesPerSecond, shape.devices, file.c_str());
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  double seconds = 0;
  EXPECT_EQ(std::fscanf(pipe.get(), "%lf", &seconds), 1) << command;
  return seconds;
}

inline double by_forms(const Mesh& mesh, const std::vector<TaskList>& stages, const std::vector<Tier>& tiers,
                       Algorithm algorithm) {
  std::vector<StepTasks> steps;
  steps.reserve(stages.size());
  for (const TaskList& tasks : stages) steps.push_back({{{tasks, 1}}});
  std::vector<SimulatedRank> ranks;
  for (size_t stage = 0; stage < steps.size(); ++stage)
    ranks.push_back({mesh.of_rank(static_cast<int>(stage) * mesh.world() / static_cast<int>(steps.size())),
                     &steps[stage]});
  return simulate_step(ranks, tiers, {.algorithm = algorithm}).step_s;
}

inline void expect_alike(const Shape& shape, const Mesh& mesh, const std::vector<TaskList>& stages,
                         Algorithm algorithm) {
  const std::vector<Tier> tiers = tiers_of(network_of(shape), mesh.world() / shape.devices, shape.devices);
  const double theirs = by_simgrid(shape, mesh, stages, tiers, algorithm);
  const double ours = by_forms(mesh, stages, tiers, algorithm);
  EXPECT_NEAR(ours / theirs, 1, 0.1) << enum_name(shape.topology) << " leaf " << shape.leaf << " of "
                                     << shape.oversubscription << ", " << to_string(mesh) << ", "
                                     << enum_name(algorithm) << ": " << ours << " s, SimGrid " << theirs
                                     << " s";
}

inline bool is_missing() {
  return std::string(SIMGRID_ORACLE).empty();
}
inline constexpr const char* kMissing = "SimGrid is not installed: apt install libsimgrid-dev";

}  // namespace vitrail::simgrid
