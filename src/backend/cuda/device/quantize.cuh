// The functions of the fp8 table, each defined in a file of its own.
#pragma once

#include "backend/cuda/api/fp8.h"

namespace vitrail::cuda {

void quantize_rows(Session& session, const Fp8RowsCall& call);
// Rounds bf16 rows of the usual widths, where a fused op's results are rounded to bf16 before they become
// codes; returns false, with nothing done, for other rows.
bool quantize_rows_by_warps(Session& session, const Fp8RowsCall& call);
void quantize_columns(Session& session, const Fp8ColumnsCall& call);
void find_tops(Session& session, const Fp8TopsCall& call);

}  // namespace vitrail::cuda
