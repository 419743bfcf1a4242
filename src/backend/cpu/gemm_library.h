// Other people's matrix products, called on one thread at a time from our own pool: OpenBLAS and oneDNN. Each
// is opened at first use: linked, it would cost every start of the program its threads and buffers. Used by
// blas.h; no vendor header is needed.
#pragma once

#include <cstdint>
#include <string>

namespace vitrail {

struct GemmLibrary {
  std::string missing;  // empty when it can be called, else why not
  std::string version;
  // c[rows, cols] = a[rows, k] * transposed(w[cols, k]), w and c contiguous; on the calling thread alone.
  void (*sgemm)(int64_t rows, int64_t cols, int64_t k, const float* a, int64_t lda, const float* w,
                float* c) = nullptr;
};

const GemmLibrary& openblas();
const GemmLibrary& onednn();

}  // namespace vitrail
