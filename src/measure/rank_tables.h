// Tabulates what a plan says of a run on several ranks: the mesh, the needs of its ranks, the stages of a
// pipeline, what is exchanged. Estimates no time and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/run_plan.h"

namespace vitrail {

// Returns "4 ranks, dp 2 x tp 2, ZeRO 1; memory, FLOPs and time are those of one rank".
std::string mesh_text(const RunPlan& plan);
// Returns the tables of stages, of ranks that differ, of collectives and of kept sums, those that have rows.
std::string rank_tables(const RunPlan& plan);
// Returns the schedule of a pipeline and what each of its stages needs.
nlohmann::ordered_json pipeline_json(const RunPlan& plan);

}  // namespace vitrail
