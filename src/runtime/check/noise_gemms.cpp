// Noise of GEMMs: each sum's own roundings, found from its partial sums, and those of its factors.
#include "ops/linear.h"
#include "runtime/check/noise_rules.h"

namespace vitrail::noise {

namespace {

// Rows of terms, and the mean square of each term's noise; empty: exact.
struct Matrix {
  int64_t rows = 0, terms = 0;
  Values values, noise = {};
};

template <typename At>
Matrix matrix_of(const Known& from, int64_t rows, int64_t terms, At&& at) {
  Matrix matrix{rows, terms, Values(static_cast<size_t>(rows * terms))};
  if (!from.noise.exact()) matrix.noise.resize(matrix.values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t term = 0; term < terms; ++term) {
      const auto source = static_cast<size_t>(at(row, term)),
                 target = static_cast<size_t>(row * terms + term);
      matrix.values[target] = from.values[source];
      if (!matrix.noise.empty()) matrix.noise[target] = from.noise.mean_square(source);
    }
  return matrix;
}
Matrix rows_of(const Known& from, int64_t rows, int64_t terms) {
  return matrix_of(from, rows, terms, [&](int64_t row, int64_t term) { return row * terms + term; });
}
Matrix columns_of(const Known& from, int64_t terms, int64_t columns) {
  return matrix_of(from, columns, terms, [&](int64_t row, int64_t term) { return term * columns + row; });
}

// Returns the variance of out[i, j] = sum_k a[i, k] b[j, k].
double sum_variance(const Matrix& a, const Matrix& b, int64_t i, int64_t j) {
  const double *x = &a.values[i * a.terms], *y = &b.values[j * b.terms];
  double sum = 0, squares = 0, factors = 0;
  for (int64_t k = 0; k < a.terms; ++k) {
    sum += x[k] * y[k];
    squares += sum * sum;
    if (!a.noise.empty()) factors += a.noise[i * a.terms + k] * y[k] * y[k];
    if (!b.noise.empty()) factors += b.noise[j * b.terms + k] * x[k] * x[k];
  }
  return squares * square(kSum) / 3 + factors;
}

Noise of_gemm(const Args& args, const Matrix& a, const Matrix& b) {
  Noise noise = silence(args.out.values.size());
  args.query.pool.run(a.rows, [&](int64_t i, int) {
    for (int64_t j = 0; j < b.rows; ++j) {
      const auto at = static_cast<size_t>(i * b.rows + j);
      noise.bound[at] = kF32 * std::abs(args.out.values[at]);
      noise.variance[at] = sum_variance(a, b, i, j);
    }
  });
  return noise;
}

// Returns patches as rows: x [B C Y X] cut by w [D C P Q]; with by_terms, [C P Q] are rows and patches terms.
Matrix patches_of(const Known& images, const Shape& weight, bool by_terms) {
  const Shape& x = images.shape;
  const int64_t channels = x.local('C'), height = x.local('Y'), width = x.local('X');
  const int64_t rows = weight.local('P'), columns = weight.local('Q');
  const int64_t across = width / columns, patches = height / rows * across;
  const int64_t count = x.local('B') * patches, elems = channels * rows * columns;
  const auto at = [=](int64_t patch, int64_t elem) {
    const int64_t b = patch / patches, n = patch % patches;
    const int64_t c = elem / (rows * columns), p = elem / columns % rows, q = elem % columns;
    return ((b * channels + c) * height + n / across * rows + p) * width + n % across * columns + q;
  };
  if (!by_terms) return matrix_of(images, count, elems, at);
  return matrix_of(images, elems, count, [=](int64_t elem, int64_t patch) { return at(patch, elem); });
}

}  // namespace

Noise of_linear(const Args& args) {
  const auto ins = args.query.ins;
  const MatmulExtents e = linear_extents(ins[0].shape, ins[1].shape);
  return of_gemm(args, rows_of(ins[0], e.m, e.k), rows_of(ins[1], e.n, e.k));
}

Noise of_linear_dx(const Args& args) {
  const auto ins = args.query.ins;
  const MatmulExtents e = linear_dx_extents(ins[0].shape, ins[1].shape);
  return of_gemm(args, rows_of(ins[0], e.m, e.n), columns_of(ins[1], e.n, e.k));
}

Noise of_linear_dw(const Args& args) {
  const auto ins = args.query.ins;
  const MatmulExtents e = linear_dw_extents(ins[0].shape, ins[1].shape);
  return of_gemm(args, columns_of(ins[1], e.m, e.n), columns_of(ins[0], e.m, e.k));
}

Noise of_patch_embed(const Args& args) {
  const auto ins = args.query.ins;
  const Shape& weight = ins[1].shape;
  const int64_t outputs = weight.local('D');
  return of_gemm(args, patches_of(ins[0], weight, false), rows_of(ins[1], outputs, weight.elems() / outputs));
}

Noise of_patch_embed_dw(const Args& args) {
  const auto ins = args.query.ins;
  const int64_t outputs = args.out.shape.local('D');
  const int64_t count = ins[1].shape.elems() / outputs;
  return of_gemm(args, columns_of(ins[1], count, outputs), patches_of(ins[0], args.out.shape, true));
}

}  // namespace vitrail::noise
