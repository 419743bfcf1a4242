// A GEMM of rows in any arithmetic of ops/linear.h. It computes in double except for what the arithmetic
// rounds: the oracle of the kernels that round. Knows no ops and no views.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "ops/linear.h"

namespace vitrail::ref {

// Rows as an arithmetic sees them: rounded values, and one scale per row where the arithmetic has scales.
// Rows of the exact arithmetic are not copied.
class RoundedRows {
 public:
  RoundedRows(const double* rows, int64_t count, int64_t width, Arithmetic arithmetic);
  RoundedRows(const RoundedRows&) = delete;
  RoundedRows& operator=(const RoundedRows&) = delete;
  ~RoundedRows() = default;

  const double* values;
  const float* scales = nullptr;

 private:
  // Each rounded value stands for value / scale, the scale being that of its row's largest magnitude.
  template <typename ScaleOf, typename Round>
  void scale_rows(const double* rows, int64_t count, int64_t width, const ScaleOf& scale_of,
                  const Round& round);

  std::vector<double> rounded_;
  std::vector<float> kept_scales_;
};

// out[m, n] = x[m, k] . w[n, k]
void multiply_rows(ThreadPool& pool, Arithmetic arithmetic, const MatmulExtents& e, const double* x,
                   const double* w, double* out);

}  // namespace vitrail::ref
