// The functions of the updates' table that are defined in files of their own; updates.cu makes the table.
#pragma once

#include "backend/cuda/api/updates.h"

namespace vitrail::cuda {

void run_lamb(Session& session, const UpdateCall& call);
void run_lamb_moments(Session& session, const UpdateCall& call);
void run_lamb_move(Session& session, const UpdateCall& call);
void run_copy(Session& session, const PairCall& call);
void run_accumulate(Session& session, const PairCall& call);
void run_average(Session& session, const PairCall& call);
void run_square_sum(Session& session, const SquareSumCall& call);
void run_total(Session& session, const TotalCall& call);
void run_step_control(Session& session, const StepControlCall& call);

}  // namespace vitrail::cuda
