#include "ops/linear.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

namespace {
// Counts the trailing dims of x and w that are contracted: as many as agree by name.
size_t contracted_rank(const Shape& x, const Shape& w) {
  size_t rank = 0;
  while (rank < x.rank() && rank < w.rank() && x[x.rank() - 1 - rank].name == w[w.rank() - 1 - rank].name)
    ++rank;
  return rank;
}

int64_t gemm(const Shape& shape, size_t first, size_t last) {
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
  for (size_t i = 1; i <= rank; ++i)
    VT_CHECK(x[x.rank() - i].extent > 0, "linear: nothing to contract between %s and %s",
             to_string(x).c_str(), to_string(w).c_str());
  std::vector<Dim> dims(x.begin(), x.end() - static_cast<std::ptrdiff_t>(rank));
  dims.insert(dims.end(), w.begin(), w.end() - static_cast<std::ptrdiff_t>(rank));
  return {{ins[0].dtype, Shape(std::move(dims))}};
}

MatmulExtents linear_extents(const Shape& x, const Shape& w) {
  const size_t rank = contracted_rank(x, w);
  return {gemm(x, 0, x.rank() - rank), gemm(w, 0, w.rank() - rank), gemm(w, w.rank() - rank, w.rank())};
}

double LinearOp::flops(DescSpan ins, DescSpan) const {
  const MatmulExtents e = linear_extents(ins[0].shape, ins[1].shape);
  return 2.0 * static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
}

namespace {
std::string arithmetic_text(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kExact ? "" : std::string("arithmetic=") + enum_name(arithmetic);
}

// bf16 and int8 are for inference only; the scales of fp8 lie along the dim that dw sums over, so they do not
// factor out of the sum.
Arithmetic arithmetic_of_dx(Arithmetic forward) {
  return forward == Arithmetic::kFp8 || forward == Arithmetic::kTF32 ? forward : Arithmetic::kExact;
}
Arithmetic arithmetic_of_dw(Arithmetic forward) {
  return forward == Arithmetic::kTF32 ? forward : Arithmetic::kExact;
}
}  // namespace

std::string LinearOp::attributes() const {
  return arithmetic_text(arithmetic_);
}
std::string LinearDxOp::attributes() const {
  return arithmetic_text(arithmetic_);
}
std::string LinearDwOp::attributes() const {
  return arithmetic_text(arithmetic_);
}

Arithmetic arithmetic_of(const Op& op) {
  if (const auto* linear = dynamic_cast<const LinearOp*>(&op)) return linear->arithmetic();
  if (const auto* dx = dynamic_cast<const LinearDxOp*>(&op)) return dx->arithmetic();
  if (const auto* dw = dynamic_cast<const LinearDwOp*>(&op)) return dw->arithmetic();
  return Arithmetic::kExact;
}

void LinearOp::grad(GradRecorder& r) const {
  const auto dx = std::make_shared<LinearDxOp>(arithmetic_of_dx(arithmetic_));
  const auto dw = std::make_shared<LinearDwOp>(arithmetic_of_dw(arithmetic_));
  if (r.wants(0)) r.give(0, r.add(dx, {r.dout(), r.in(1)}, "dx"));
  if (r.wants(1)) r.give(1, r.add(dw, {r.in(0), r.dout()}, "dw"));
}

namespace {
double matmul_flops(const MatmulExtents& e) {
  return 2.0 * static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
}

// Counts the leading dims of w that are the last dims of dy.
size_t contracted_outputs(const Shape& dy, const Shape& w) {
  for (size_t rank = std::min(dy.rank(), w.rank()); rank > 0; --rank) {
    bool agree = true;
    for (size_t i = 0; i < rank; ++i) agree = agree && dy[dy.rank() - rank + i] == w[i];
    if (agree) return rank;
  }
  return 0;
}

size_t shared_rows(const Shape& x, const Shape& dy) {
  size_t rank = 0;
  while (rank < x.rank() && rank < dy.rank() && x[rank] == dy[rank]) ++rank;
  return rank;
}
}  // namespace

MatmulExtents linear_dx_extents(const Shape& dy, const Shape& w) {
  const size_t rank = contracted_outputs(dy, w);
  return {gemm(dy, 0, dy.rank() - rank), gemm(w, 0, rank), gemm(w, rank, w.rank())};
}

MatmulExtents linear_dw_extents(const Shape& x, const Shape& dy) {
  const size_t rank = shared_rows(x, dy);
  return {gemm(x, 0, rank), gemm(dy, rank, dy.rank()), gemm(x, rank, x.rank())};
}

std::vector<TensorDesc> LinearDxOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &dy = ins[0].shape, &w = ins[1].shape;
  const size_t rank = contracted_outputs(dy, w);
  VT_CHECK(rank > 0, "linear_dx: the first dims of %s are not the last of %s", to_string(w).c_str(),
           to_string(dy).c_str());
  std::vector<Dim> dims(dy.begin(), dy.end() - static_cast<std::ptrdiff_t>(rank));
  dims.insert(dims.end(), w.begin() + static_cast<std::ptrdiff_t>(rank), w.end());
  return {{ins[0].dtype, Shape(std::move(dims))}};
}

double LinearDxOp::flops(DescSpan ins, DescSpan) const {
  return matmul_flops(linear_dx_extents(ins[0].shape, ins[1].shape));
}

std::vector<TensorDesc> LinearDwOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &dy = ins[1].shape;
  const auto rank = static_cast<std::ptrdiff_t>(shared_rows(x, dy));
  VT_CHECK(rank > 0, "linear_dw: %s and %s share no first dim", to_string(x).c_str(), to_string(dy).c_str());
  std::vector<Dim> dims(dy.begin() + rank, dy.end());
  dims.insert(dims.end(), x.begin() + rank, x.end());
  return {{accumulator_dtype(ins[0].dtype), Shape(std::move(dims))}};
}

double LinearDwOp::flops(DescSpan ins, DescSpan) const {
  return matmul_flops(linear_dw_extents(ins[0].shape, ins[1].shape));
}

int64_t LinearOp::reduction_length(DescSpan ins) const {
  return linear_extents(ins[0].shape, ins[1].shape).k;
}
int64_t LinearDxOp::reduction_length(DescSpan ins) const {
  return linear_dx_extents(ins[0].shape, ins[1].shape).n;
}
int64_t LinearDwOp::reduction_length(DescSpan ins) const {
  return linear_dw_extents(ins[0].shape, ins[1].shape).m;
}

}  // namespace vitrail
