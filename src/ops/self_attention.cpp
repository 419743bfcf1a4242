#include "ops/self_attention.h"

#include <algorithm>

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

void TokenHeadsOp::expect_heads(const TensorDesc& x) const {
  VT_CHECK(x.shape.rank() == 3 && heads_ >= 1 && x.shape[2].local % heads_ == 0,
           "%s: %s does not fall into %lld heads", std::string(kind()).c_str(), to_string(x).c_str(),
           static_cast<long long>(heads_));
}

AttentionGeometry TokenHeadsOp::geometry(const Shape& x) const {
  const int64_t tokens = x[1].local, width = x[2].local, size = width / heads_;
  const AttentionStrides rows{0, tokens * width, width, size};
  return {x[0].local, heads_, tokens, tokens, size, rows, rows, rows, rows};
}

int64_t TokenHeadsOp::reduction_length(DescSpan ins) const {
  const AttentionGeometry g = geometry(ins[0].shape);
  return std::max(g.keys, g.head_size);
}

double TokenHeadsOp::flops(DescSpan ins, DescSpan) const {
  const AttentionGeometry g = geometry(ins[0].shape);
  const auto scores = static_cast<double>(g.batch * g.heads * g.queries) * static_cast<double>(g.keys);
  return passes_ * scores * (4.0 * static_cast<double>(g.head_size) + 5.0);
}

std::vector<TensorDesc> SelfAttentionOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  expect_heads(ins[0]);
  return {ins[0]};
}

void SelfAttentionOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<SelfAttentionGradOp>({r.in(0), r.dout()}, "dx", heads_));
}

std::vector<TensorDesc> SelfAttentionGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_heads(ins[0]);
  expect_same(*this, ins[0], {ins[0].dtype, ins[1].shape});
  return {ins[0]};
}

}  // namespace vitrail
