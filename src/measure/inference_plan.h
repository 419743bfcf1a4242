// The needs of an inference, found before it runs: memory, arithmetic, time on the target device, the largest
// batch that fits. Loads and allocates nothing, prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/engine.h"
#include "plan/target.h"
#include "train/mesh_config.h"

namespace vitrail {

struct InferencePlan {
  InferencePlan(const VitConfig& model, const EngineOptions& options, PlanTarget device);

  VitConfig config;
  int64_t batch = 1;  // of all ranks
  Mesh mesh;          // and which of its ranks is planned
  PlanTarget target;
  ExecutionPlan plan;
  int64_t largest_batch = 0;  // largest batch that fits the target's memory; 0: none

  bool fits() const { return plan.memory.peak_bytes() <= target.available_bytes; }
};
nlohmann::ordered_json to_json(const InferencePlan& plan);
std::string to_text(const InferencePlan& plan);

// Returns the program as a pass leaves it, one line a node.
std::string dump_program(const VitConfig& config, const EngineOptions& options, const std::string& after);

// Makes a plan that of a mesh's last rank: parts are cut so that none is larger.
void take_last_rank(const MeshConfig& wanted, EngineOptions& engine);

// Describes memory of a GPU that the driver and libraries hold outside any plan.
std::string foreign_text(size_t bytes);

}  // namespace vitrail
