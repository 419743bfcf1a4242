#include "ops/elementwise.h"

#include "graph/grad.h"
#include "ops/expect.h"

namespace vitrail {

std::vector<TensorDesc> AddOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, {ins[0].dtype, ins[0].shape}, {ins[0].dtype, ins[1].shape});
  return {size_of(ins[0].dtype) >= size_of(ins[1].dtype) ? ins[0] : ins[1]};
}

void AddOp::grad(GradRecorder& r) const {
  for (size_t i : {0u, 1u})
    if (r.wants(i)) r.give(i, r.dout());
}

std::vector<TensorDesc> AverageOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double AverageOp::flops(DescSpan, DescSpan outs) const {
  return 2.0 * static_cast<double>(outs[0].elems());
}

void AverageOp::grad(GradRecorder& r) const {
  const ValueId half = r.add<MultiplyOp>({r.dout()}, "half", 0.5);
  for (size_t i : {0u, 1u})
    if (r.wants(i)) r.give(i, half);
}

std::vector<TensorDesc> MultiplyOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

void MultiplyOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<MultiplyOp>({r.dout()}, "dx", factor_));
}

std::vector<TensorDesc> ScaleByOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  VT_CHECK(ins[1].elems() >= 1, "scale_by: no factor in %s", to_string(ins[1]).c_str());
  return {ins[0]};
}

std::vector<TensorDesc> CastOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  const bool stays = ins[0].dtype == DType::kF64 && size_of(to_) == 2;
  return {{stays ? DType::kF64 : to_, ins[0].shape}};
}

void CastOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<CastOp>({r.dout()}, "dx", r.desc(r.in(0)).dtype));
}

std::vector<TensorDesc> TanhOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 1);
  return {ins[0]};
}

void TanhOp::grad(GradRecorder& r) const {
  if (r.wants(0)) r.give(0, r.add<TanhGradOp>({r.out(), r.dout()}, "dx"));
}

std::vector<TensorDesc> TanhGradOp::infer(DescSpan ins) const {
  expect_inputs(*this, ins, 2);
  expect_same(*this, ins[0], ins[1]);
  return {ins[0]};
}

double TanhGradOp::flops(DescSpan, DescSpan outs) const {
  return 3.0 * static_cast<double>(outs[0].elems());
}

}  // namespace vitrail
