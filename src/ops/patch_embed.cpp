#include "ops/patch_embed.h"

#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> PatchEmbedOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &w = ins[1].shape;
  for (char name : {'B', 'C', 'Y', 'X'}) expect_dim(*this, x, name);
  for (char name : {'D', 'C', 'P', 'Q'}) expect_dim(*this, w, name);
  VT_CHECK(x[1] == w[1], "patch_embed: channels differ: %s and %s", to_string(x).c_str(),
           to_string(w).c_str());
  VT_CHECK(x.local('Y') % w.local('P') == 0 && x.local('X') % w.local('Q') == 0,
           "patch_embed: the patch does not divide the picture: %s and %s", to_string(x).c_str(),
           to_string(w).c_str());
  const int64_t patches = (x.local('Y') / w.local('P')) * (x.local('X') / w.local('Q'));
  return {{ins[0].dtype, {x[0], Dim('N', patches), w[0]}}};
}

double PatchEmbedOp::flops(DescSpan ins, DescSpan outs) const {
  const Shape& w = ins[1].shape;
  return 2.0 * static_cast<double>(outs[0].elems()) *
         static_cast<double>(w.local('C') * w.local('P') * w.local('Q'));
}

}  // namespace vitrail
