// The meshes on which training must give the losses of one rank: a list of a narrow model, which every test
// run takes, and the table of a wider one.
#pragma once

#include "mesh_run.h"

namespace vitrail {

std::vector<MeshCase> narrow_cases();
// The table: all of it, or the rows that together touch every strategy.
std::vector<MeshCase> wide_cases(bool all);

// Pipelines of a model of 12 blocks: stages, micro-batches, schedules, other axes beside them; all of it, or
// a few rows of each.
std::vector<MeshCase> pipeline_cases(bool all);

}  // namespace vitrail
