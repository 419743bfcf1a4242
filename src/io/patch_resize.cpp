// Resizes the weights of a patch embedding to patches of another size, by the pseudo-inverse of FlexiViT.
#include "io/weight_resize.h"

#include <cmath>
#include <vector>

#include "base/error.h"

namespace vitrail {

namespace {

// A matrix, row-major.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
  double& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * columns + c)]; }
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) result.at(i, j) += a.at(i, k) * b.at(k, j);
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  return result;
}

// Computes the lower triangle L of a = L L' in place; a is symmetric and positive definite.
void factor(Matrix& a) {
  for (int64_t j = 0; j < a.rows; ++j) {
    for (int64_t k = 0; k < j; ++k)
      for (int64_t i = j; i < a.rows; ++i) a.at(i, j) -= a.at(i, k) * a.at(j, k);
    VT_CHECK(a.at(j, j) > 0, "the resize has no full rank");
    const double pivot = std::sqrt(a.at(j, j));
    for (int64_t i = j; i < a.rows; ++i) a.at(i, j) /= pivot;
  }
}

// Solves a x = b, into b.
void solve(Matrix a, Matrix& b) {
  factor(a);
  for (int64_t c = 0; c < b.columns; ++c) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t k = 0; k < i; ++k) b.at(i, c) -= a.at(i, k) * b.at(k, c);
      b.at(i, c) /= a.at(i, i);
    }
    for (int64_t i = a.rows - 1; i >= 0; --i) {
      for (int64_t k = i + 1; k < a.rows; ++k) b.at(i, c) -= a.at(k, i) * b.at(k, c);
      b.at(i, c) /= a.at(i, i);
    }
  }
}

// One axis's resize has full rank, and its least singular value is above a quarter of the largest for every
// pair of sizes up to 64, so the normal equations lose nothing that matters.
Matrix pseudo_inverse(const Matrix& a) {
  const Matrix t = transposed(a);
  if (a.rows >= a.columns) {
    Matrix result = t;
    solve(product(t, a), result);
    return result;
  }
  Matrix result = a;
  solve(product(a, t), result);
  return transposed(result);
}

}  // namespace

void resample_patches(std::span<const float> source, int64_t from, std::span<float> target, int64_t to) {
  const auto size = [](int64_t v) { return static_cast<size_t>(v); };
  const size_t kernels = source.size() / size(from * from);
  VT_CHECK(source.size() == kernels * size(from * from) && target.size() == kernels * size(to * to),
           "patch weights do not fit their sizes");
  Matrix resize(to, from);
  resize.values = resize_matrix(PosResize::kTimm, from, to);
  const Matrix columns = pseudo_inverse(resize), rows = transposed(columns);
  Matrix kernel(from, from);
  for (size_t k = 0; k < kernels; ++k) {
    for (size_t i = 0; i < kernel.values.size(); ++i)
      kernel.values[i] = static_cast<double>(source[k * kernel.values.size() + i]);
    const Matrix result = product(product(rows, kernel), columns);
    for (size_t i = 0; i < result.values.size(); ++i)
      target[k * result.values.size() + i] = static_cast<float>(result.values[i]);
  }
}

}  // namespace vitrail
