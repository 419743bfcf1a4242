// The vector functions of one instruction set as a table: the tables of the rooms together. Every function
// works on one fixed tile, single-threaded, in memory the caller gives; each output value is computed by the
// same chain of operations whatever tile it falls in, so tiling never changes a result. Knows nothing of ops,
// tensors or threads.
#pragma once

#include "backend/cpu/attention/table.h"
#include "backend/cpu/elementwise/table.h"
#include "backend/cpu/gemm/table.h"
#include "backend/cpu/lowp/table.h"
#include "backend/cpu/norm/table.h"
#include "backend/cpu/reduce/table.h"
#include "backend/cpu/update/table.h"

namespace vitrail::cpu {

// The yardstick: independent multiply-adds on registers alone, spin_flops floating-point operations a round.
struct SpinTable {
  int64_t spin_flops;
  float (*spin)(int64_t rounds);  // the result only keeps the compiler honest
};

// The micro-kernel's size and that of its vectors.
struct IsaShape {
  const char* name;
  int lanes;   // floats in a vector
  int mr, nr;  // rows and columns of the micro-kernel
};

struct IsaKernels : IsaShape,
                    GemmTable,
                    PanelTable,
                    RowGemmTable,
                    AttentionTable,
                    AttentionGradTable,
                    NormTable,
                    ElementwiseTable,
                    ReduceTable,
                    UpdateTable,
                    ConvertTable,
                    SpinTable {
  LowpKernels bf16, int8;
  LowpKernels split = {};  // f32 GEMMs by parts in bf16; null where a level has none
  Bf16TensorKernels bf16_tensors = {};
};

namespace baseline {
const IsaKernels& kernels();
}
namespace avx2 {
const IsaKernels& kernels();
}
namespace avx512 {
const IsaKernels& kernels();
}
namespace vnni {
const IsaKernels& kernels();
}
namespace amx {
const IsaKernels& kernels();
}

}  // namespace vitrail::cpu
