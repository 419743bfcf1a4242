// The functions of the GEMM table, each defined in a file of its own.
#pragma once

#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

void gemm(Session& session, const GemmCall& call);
void tiled_gemm(Session& session, const GemmCall& call);
void hopper_gemm(Session& session, const FusedGemmCall& call);
void hopper_fp8_gemm(Session& session, const FusedGemmCall& call);
void small_gemm(Session& session, const SmallGemmCall& call);
void finish_gemm(Session& session, const FinishCall& call);
void gather_patches(Session& session, const PatchesCall& call);
void copy_rows(Session& session, const RowsCall& call);

}  // namespace vitrail::cuda
