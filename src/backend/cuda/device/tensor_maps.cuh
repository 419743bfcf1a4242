// Descriptions of matrices in global memory for TMA loads and stores, as the driver encodes them: boxes of 64
// 16-bit columns, whose rows of 128 bytes are permuted by Swizzle<64> in shared memory. Knows no op.
#pragma once

#include <cuda.h>

#include "backend/cuda/api/attention.h"
#include "backend/cuda/api/gemms.h"

namespace vitrail::cuda {

// A matrix of contiguous rows; a box has `box_rows` rows. Of 8-bit elements (kU8) a box has 128 columns.
CUtensorMap matrix_map(const Operand& matrix, int64_t rows, int64_t columns, int box_rows);
// A matrix of 8-bit elements in boxes of 64 columns, whose rows of 64 bytes are permuted accordingly.
CUtensorMap codes_map(const Operand& matrix, int64_t rows, int64_t columns, int box_rows);

// The rows of every head, with the coordinates {element, row, head, image}. What a box holds beyond the
// head's rows and elements becomes zero.
CUtensorMap heads_map(const HeadRows& heads, int64_t rows, int64_t head_size, int64_t count, int64_t images,
                      int box_rows);

}  // namespace vitrail::cuda
