// Copies of runs of bytes within the GPU, by the driver: with its DMA engines or with kernels of its own.
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

void copy(Session& session, const BlockCopy& call) {
  if (call.run == 0 || call.runs == 0) return;
  check(cudaMemcpy2DAsync(call.to, call.to_pitch, call.from, call.from_pitch, call.run, call.runs,
                          cudaMemcpyDeviceToDevice, session.stream),
        "copying runs of bytes");
}

void clear(Session& session, void* target, size_t bytes) {
  if (bytes > 0) check(cudaMemsetAsync(target, 0, bytes, session.stream), "clearing bytes");
}

}  // namespace

MovesApi moves_api() {
  return {.copy = copy, .clear = clear};
}

}  // namespace vitrail::cuda
