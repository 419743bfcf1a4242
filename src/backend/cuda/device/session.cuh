// The members of a session, and how CUDA's error codes become errors. Every .cu file of the plugin includes
// it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/api/session.h"
#include "base/error.h"

namespace vitrail::cuda {

struct GemmCache;  // cuBLASLt's algorithms for each GEMM, in gemm.cu

struct Session {
  Session() = default;
  ~Session();  // also frees what was made so far when opening has failed
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int ordinal = 0;
  int processors = 0;
  bool overlaps = false;          // whether launches may overlap, see launch.cuh
  size_t foreign_bytes = 0;       // see foreign.cuh
  cudaStream_t stream = nullptr;  // the stream of programs
  std::vector<cudaStream_t> more_streams;
  std::mutex streams_mutex;  // memory may be freed from another thread than the session's
  cublasLtHandle_t blas = nullptr;
  std::shared_ptr<GemmCache> gemms;
};

// Makes the session's GPU current in the calling thread.
void use(const Session& session);
// Waits for all streams of the session; returns the first failure of any.
cudaError_t await_streams(Session& session);
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
// Checks for errors; to be called after every kernel launch.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}
// Lets a kernel use more shared memory than the default on this GPU. The limit is never lowered: a captured
// launch, or another thread's, may need it.
template <typename F>
void allow_shared(F* kernel, size_t bytes, const char* name) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  cudaFuncAttributes now;
  check(cudaFuncGetAttributes(&now, kernel), name);
  if (now.maxDynamicSharedSizeBytes >= static_cast<int>(bytes)) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        name);
}

inline unsigned blocks_for(int64_t items, int64_t each) {
  return static_cast<unsigned>((items + each - 1) / each);
}

}  // namespace vitrail::cuda
