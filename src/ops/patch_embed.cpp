#include "ops/patch_embed.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> PatchEmbedOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &w = ins[1].shape;
  for (char name : {'B', 'C', 'Y', 'X'}) expect_dim(*this, x, name);
  for (char name : {'D', 'C', 'P', 'Q'}) expect_dim(*this, w, name);
  VT_CHECK(x[1] == w[1], "patch_embed: channels differ: %s and %s", to_string(x).c_str(),
           to_string(w).c_str());
  VT_CHECK(x.local('Y') >= w.local('P') && x.local('X') >= w.local('Q'),
           "patch_embed: the patch is larger than the image: %s and %s", to_string(x).c_str(),
           to_string(w).c_str());
  const int64_t patches = (x.local('Y') / w.local('P')) * (x.local('X') / w.local('Q'));
  return {{ins[0].dtype, {x[0], Dim('N', patches), w[0]}}};
}

double PatchEmbedOp::flops(DescSpan ins, DescSpan outs) const {
  const Shape& w = ins[1].shape;
  return 2.0 * static_cast<double>(outs[0].elems()) *
         static_cast<double>(w.local('C') * w.local('P') * w.local('Q'));
}

void PatchEmbedOp::grad(GradRecorder& r) const {
  VT_CHECK(!r.wants(0), "patch_embed: images take no gradient");
  const Shape& w = r.desc(r.in(1)).shape;
  if (r.wants(1)) r.give(1, r.add<PatchEmbedDwOp>({r.in(0), r.dout()}, "dw", w.local('P'), w.local('Q')));
}

std::vector<TensorDesc> PatchEmbedDwOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  const Shape &x = ins[0].shape, &dy = ins[1].shape;
  expect_last(*this, dy, 'D');
  VT_CHECK((x.local('Y') / rows_) * (x.local('X') / columns_) == dy.local('N'),
           "patch_embed_dw: %s has other patches than %s", to_string(dy).c_str(), to_string(x).c_str());
  return {{accumulator_dtype(ins[1].dtype), {dy[2], x[1], Dim('P', rows_), Dim('Q', columns_)}}};
}

double PatchEmbedDwOp::flops(DescSpan ins, DescSpan outs) const {
  const Shape& dy = ins[1].shape;
  return 2.0 * static_cast<double>(outs[0].elems()) * static_cast<double>(dy.local('B') * dy.local('N'));
}

int64_t PatchEmbedOp::reduction_length(DescSpan ins) const {
  return ins[1].elems() / ins[1].shape.local('D');
}
int64_t PatchEmbedDwOp::reduction_length(DescSpan ins) const {
  return ins[1].elems() / ins[1].shape.local('D');
}

}  // namespace vitrail
