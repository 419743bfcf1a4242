// oneDNN's GEMM, called on single tiles by the threads of our own pool. The library is opened at first use:
// linked, it would cost every start of the program its threads and buffers. No vendor header is needed. A
// library belongs here only if several threads may call it at once.
#pragma once

#include <cstdint>
#include <string>

namespace vitrail::cpu {

struct GemmLibrary {
  std::string missing;  // empty when it can be called, else why not
  std::string version;
  // c[rows, cols] = a[rows, k] * transposed(w[cols, k]), w and c contiguous; it runs on the calling thread
  // alone.
  void (*sgemm)(int64_t rows, int64_t cols, int64_t k, const float* a, int64_t lda, const float* w,
                float* c) = nullptr;
};

const GemmLibrary& onednn();

}  // namespace vitrail::cpu
