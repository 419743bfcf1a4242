// A training step on every rank of a mesh, the ranks being threads of the test: made-up images by their
// global position, so that every mesh sees the same ones.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "train/train_step.h"

namespace vitrail {

struct MeshCase {
  std::string name;
  std::array<int, kAxisCount> mesh = {1, 1, 1};
  std::function<void(StepConfig&)> change = {};  // from the usual step
  int64_t accumulation = 1;
};

// Where the ranks of a mesh compute and how their values travel; by default on the processor, in its memory.
struct MeshDevices {
  const Backend* backend = nullptr;
  DeviceInfo info = {};
  std::function<std::unique_ptr<Device>()> open = {};
  // Called on every rank before its step is made.
  std::function<void(RankContext&, MeshCommunicators&)> join = {};
  bool node_by_node = false;  // nothing is recorded
};

struct MeshOutcome {
  std::vector<double> losses;                         // by update
  std::map<std::string, std::vector<double>> values;  // parameters and averages, whole
  // By rank: planned and allocated bytes.
  std::vector<size_t> planned, allocated;
  // The same of page-locked memory through which values travel.
  std::vector<size_t> planned_locked = {}, locked = {};
  bool recorded = false;  // the last micro-batch of an update, on the first rank
};

// The usual step: 12 heads, dropout, stochastic depth, an average, clipping, AdamW.
StepConfig usual_step(DType master);

// Runs updates of `usual_step`, changed by the case, on as many rank threads as the mesh has.
MeshOutcome run_mesh(const MeshCase& c, DType master, int64_t updates, const MeshDevices& devices = {});

}  // namespace vitrail
