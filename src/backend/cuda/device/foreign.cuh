// Memory of a GPU that no arena holds: the driver's context, the libraries and their kernels. Used by the
// session, which measures it as it opens.
#pragma once

#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// What the driver says is free on the GPU, asked without making a context; 0: it cannot be asked.
size_t free_on_gpu(int ordinal);

// Lets the libraries take what they take: a first small GEMM.
void start_libraries(Session& session);

// What the first session of this process took from the GPU before it allocated anything.
void note_foreign(Session& session, size_t free_before);

}  // namespace vitrail::cuda
