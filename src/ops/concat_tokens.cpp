#include "ops/concat_tokens.h"

#include "graph/grad.h"
#include "ops/expect.h"
#include "ops/pool_tokens.h"

namespace vitrail {

std::vector<TensorDesc> ConcatTokensOp::infer(DescSpan ins) const {
  VT_CHECK(ins.size() >= 2, "concat_tokens: nothing to put before the patches");
  const Shape& x = ins.back().shape;
  expect_dim(*this, x, 'N');
  int64_t tokens = x.local('N');
  for (const TensorDesc& prefix : ins.first(ins.size() - 1)) {
    VT_CHECK(prefix.shape.rank() == 2, "concat_tokens: expected tokens [S D], found %s",
             to_string(prefix).c_str());
    expect_suffix(*this, x, {prefix.shape[1]});
    tokens += prefix.shape.local('S');
  }
  return {{ins[0].dtype, x.with('N', Dim('N', tokens))}};
}

void ConcatTokensOp::grad(GradRecorder& r) const {
  int64_t first = 0;
  const int64_t tokens = r.desc(r.out()).shape.local('N');
  for (size_t i = 0; first < tokens; ++i) {
    const Shape& part = r.desc(r.in(i)).shape;
    if (part.has('N')) {
      if (r.wants(i)) r.give(i, r.add<DropTokensOp>({r.dout()}, "dx", first));
      return;
    }
    const int64_t count = part.local('S');
    if (r.wants(i)) r.give(i, r.add<SumTokensOp>({r.dout()}, "dprefix", first, count));
    first += count;
  }
}

std::vector<TensorDesc> SumTokensOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const Shape& x = ins[0].shape;
  VT_CHECK(first_ + count_ <= x.local('N'), "sum_tokens: no tokens up to %lld in %s",
           static_cast<long long>(first_ + count_), to_string(x).c_str());
  return {{accumulator_dtype(ins[0].dtype), {Dim('S', count_), x[2]}}};
}

double SumTokensOp::flops(DescSpan ins, DescSpan outs) const {
  return static_cast<double>(outs[0].elems()) * static_cast<double>(ins[0].shape.local('B'));
}

}  // namespace vitrail
