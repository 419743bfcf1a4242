// The functions of the rows family that are defined in files of their own; rows.cu makes the table of them.
#pragma once

#include "backend/cuda/api/rows.h"

namespace vitrail::cuda {

void sum(Session& session, const SumCall& call);
void dropout(Session& session, const DropoutCall& call);

}  // namespace vitrail::cuda
