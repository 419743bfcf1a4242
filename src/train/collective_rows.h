// The collectives of any program of a rank, counted as those of a training update are.
#pragma once

#include "train/step_plan.h"

namespace vitrail {

std::vector<CollectiveRow> collective_rows(const Program& program, const Mesh& mesh);

}  // namespace vitrail
