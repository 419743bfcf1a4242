// A training step on every rank of a mesh, the ranks being threads of the test: synthetic images by their
// global position, mixed in pairs, so that every mesh sees the same ones.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "train/train_step.h"

namespace vitrail {

// Images that are mixed together, of neighbouring positions.
inline constexpr int64_t kMixed = 2;

// What is computed, as a change of the usual step.
struct MeshModel {
  const char* name = "plain";
  void (*change)(StepConfig&) = nullptr;
};

struct MeshCase {
  std::string name;
  std::array<int, kAxisCount> mesh = {1, 1, 1};
  std::function<void(StepConfig&)> change = {};  // how the step is shared out; its results stay
  int64_t accumulation = 1;
  MeshModel model = {};
  int64_t batch = 24;  // of an update
};

inline void PrintTo(const MeshCase& c, std::ostream* out) {
  *out << c.name;
}

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
  std::vector<std::vector<float>> logits = {};  // by rank: its rows of an evaluation of the averages
  std::vector<int64_t> first_row = {};          // by rank: of those, in the whole
  size_t recordings = 0;                        // of the last micro-batch of an update, on the first rank
};

// The usual step: 12 heads, dropout, stochastic depth, mixed images, an average, clipping, AdamW; narrow.
StepConfig usual_step(DType master);
// Makes the usual step's model one of depth 4, width 192 and 65 tokens.
void widen(StepConfig& step);
// Lists every parameter as trained, or those that begin with the one name listed, which ends with a dot; with
// LoRA, those of the adapters and the head.
void train_parameters(StepConfig& step);

// Runs updates of `usual_step`, changed by the case, on as many rank threads as the mesh has.
MeshOutcome run_mesh(const MeshCase& c, DType master, int64_t updates, const MeshDevices& devices = {});

}  // namespace vitrail
