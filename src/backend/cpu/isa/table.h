// The vector functions of one instruction set, gathered from the tables of the CPU backend's folders. Every
// function works on one fixed tile, single-threaded, in memory that the caller provides; each output value is
// computed by the same chain of operations whatever tile it falls in, so tiling never changes a result. Knows
// nothing of ops, tensors or threads.
#pragma once

#include "backend/cpu/attention/table.h"
#include "backend/cpu/elementwise/table.h"
#include "backend/cpu/gemm/table.h"
#include "backend/cpu/lowp/table.h"
#include "backend/cpu/norm/table.h"
#include "backend/cpu/reduce/table.h"
#include "backend/cpu/update/table.h"

namespace vitrail::cpu {

// The yardstick of peak FLOP/s: independent multiply-adds on registers alone, spin_flops floating-point
// operations per round.
struct SpinTable {
  int64_t spin_flops;
  float (*spin)(int64_t rounds);  // the result only keeps the compiler honest
};

// The sizes of the micro-kernel and of its vectors.
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
  LowpKernels split = {};  // f32 GEMMs by bf16 parts; null where an instruction set has none
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
