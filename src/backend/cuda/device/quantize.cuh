// The functions of the fp8 table, each in a file of its own.
#pragma once

#include "backend/cuda/api/fp8.h"

namespace vitrail::cuda {

void quantize_rows(Session& session, const Fp8RowsCall& call);
// Of bf16 rows of the usual widths, whose results are bf16 before they are codes; false: not of these.
bool quantize_rows_by_warps(Session& session, const Fp8RowsCall& call);
void quantize_columns(Session& session, const Fp8ColumnsCall& call);

}  // namespace vitrail::cuda
