#include "ops/linear.h"

#include "ops/expect.h"

namespace vitrail {

namespace {
// How many trailing dims of x and w are contracted: as many as agree by name.
size_t contracted_rank(const Shape& x, const Shape& w) {
  size_t rank = 0;
  while (rank < x.rank() && rank < w.rank() && x[x.rank() - 1 - rank].name == w[w.rank() - 1 - rank].name)
    ++rank;
  return rank;
}

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t total = 1;
  for (size_t i = first; i < last; ++i) total *= shape[i].local;
  return total;
}
}  // namespace

std::vector<TensorDesc> LinearOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &w = ins[1].shape;
  const size_t rank = contracted_rank(x, w);
  VT_CHECK(rank > 0, "linear: %s and %s share no last dim", to_string(x).c_str(), to_string(w).c_str());
  for (size_t i = 1; i <= rank; ++i)
    VT_CHECK(x[x.rank() - i] == w[w.rank() - i], "linear: %s and %s differ in a shared dim",
             to_string(x).c_str(), to_string(w).c_str());
  VT_CHECK(linear_extents(x, w).k > 0, "linear: nothing to contract between %s and %s", to_string(x).c_str(),
           to_string(w).c_str());
  std::vector<Dim> dims(x.begin(), x.end() - static_cast<std::ptrdiff_t>(rank));
  dims.insert(dims.end(), w.begin(), w.end() - static_cast<std::ptrdiff_t>(rank));
  return {{ins[0].dtype, Shape(std::move(dims))}};
}

MatmulExtents linear_extents(const Shape& x, const Shape& w) {
  const size_t rank = contracted_rank(x, w);
  return {product(x, 0, x.rank() - rank), product(w, 0, w.rank() - rank),
          product(w, w.rank() - rank, w.rank())};
}

double LinearOp::flops(DescSpan ins, DescSpan) const {
  const MatmulExtents e = linear_extents(ins[0].shape, ins[1].shape);
  return 2.0 * static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
}

}  // namespace vitrail
