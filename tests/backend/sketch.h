// A node as kernels are chosen for it: an op and the descriptions of its values, without a program.
#pragma once

#include "backend/kernel.h"

namespace vitrail {

struct Sketch {
  OpPtr op;
  std::vector<TensorDesc> ins, outs;

  Sketch(OpPtr what, std::vector<TensorDesc> from)
      : op(std::move(what)), ins(std::move(from)), outs(op->infer(ins)) {}
  NodeView view() const { return {*op, ins, outs}; }
};

}  // namespace vitrail
