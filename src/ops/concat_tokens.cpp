#include "ops/concat_tokens.h"

#include "ops/expect.h"

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

}  // namespace vitrail
