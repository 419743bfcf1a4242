// A session's insides and how CUDA's answers become errors. Every .cu file of the plugin includes it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/api/session.h"
#include "base/error.h"

namespace vitrail::cuda {

struct GemmCache;  // what gemm.cu has asked cuBLASLt

struct Session {
  Session() = default;
  ~Session();  // of what was made so far, should opening have failed
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int ordinal = 0;
  int processors = 0;
  size_t foreign_bytes = 0;       // see foreign.cuh
  cudaStream_t stream = nullptr;  // of the work
  cudaStream_t aside = nullptr;   // of uploads beside it
  cudaEvent_t landed = nullptr, taken = nullptr;
  cublasLtHandle_t blas = nullptr;
  std::vector<cudaEvent_t> marks;
  std::shared_ptr<GemmCache> gemms;
};

void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
// After every kernel launch.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}
// Lets a kernel use more shared memory than the default on this card, never less than before: a recorded
// launch, or another thread's, may want it.
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
