// The memory of a GPU that no arena holds: the driver's context, the libraries and their kernels. It is
// measured when a session opens.
#pragma once

#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

// The free bytes of the GPU according to the driver, without creating a context; 0: unknown.
size_t free_on_gpu(int ordinal);

// Runs a first small GEMM, so that the libraries allocate what they need.
void start_libraries(Session& session);

// Notes what the first session of this process took from the GPU before it allocated anything.
void note_foreign(Session& session, size_t free_before);

}  // namespace vitrail::cuda
