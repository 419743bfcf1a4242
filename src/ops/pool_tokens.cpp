#include "ops/pool_tokens.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

namespace {
// Returns [B N D] without its token dim, the second one (N, or S after attention pooling).
TensorDesc pooled(const TensorDesc& x) {
  return {x.dtype, {x.shape[0], x.shape[2]}};
}
}  // namespace

HeldTokens held_tokens(const Dim& part, int64_t first, int64_t end) {
  const int64_t from = std::clamp<int64_t>(first - part.offset, 0, part.local);
  return {from, std::clamp<int64_t>(end - part.offset, 0, part.local) - from};
}

std::vector<TensorDesc> SelectTokenOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].shape.rank() == 3 && index() < ins[0].shape[1].extent, "select_token: no token %lld in %s",
           static_cast<long long>(index()), to_string(ins[0]).c_str());
  return {pooled(ins[0])};
}

std::vector<TensorDesc> MeanTokensOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  VT_CHECK(ins[0].shape.rank() == 3 && first() < ins[0].shape[1].extent, "mean_tokens: no token %lld in %s",
           static_cast<long long>(first()), to_string(ins[0]).c_str());
  return {pooled(ins[0])};
}

double MeanTokensOp::flops(DescSpan ins, DescSpan) const {
  return static_cast<double>(ins[0].elems());
}

std::vector<TensorDesc> DropTokensOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const int64_t tokens = ins[0].shape.local('N');
  VT_CHECK(first() < tokens, "drop_tokens: no token %lld in %s", static_cast<long long>(first()),
           to_string(ins[0]).c_str());
  return {{ins[0].dtype, ins[0].shape.with('N', Dim('N', tokens - first()))}};
}

void SelectTokenOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<SelectTokenGradOp>({r.dout()}, "dx", index(), r.desc(r.in(0)).shape[1]));
}

void MeanTokensOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<MeanTokensGradOp>({r.dout()}, "dx", first(), r.desc(r.in(0)).shape[1]));
}

void DropTokensOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<DropTokensGradOp>({r.dout()}, "dx", first()));
}

std::vector<TensorDesc> MadeTokensOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {{ins[0].dtype, {ins[0].shape[0], tokens_, ins[0].shape[1]}}};
}

OpPtr SelectTokenGradOp::with_tokens(const Dim& part) const {
  return std::make_shared<SelectTokenGradOp>(token(), part);
}

OpPtr MeanTokensGradOp::with_tokens(const Dim& part) const {
  return std::make_shared<MeanTokensGradOp>(token(), part);
}

std::vector<TensorDesc> DropTokensGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& dy = ins[0].shape;
  return {{ins[0].dtype, dy.with('N', Dim('N', dy.local('N') + first()))}};
}

}  // namespace vitrail
