// The abstract operation: immutable, typed fields in each subclass. Knows shapes, cost and how its dims may
// be split; knows neither devices nor memory. Ops live in ops/, kernels in backend/.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace vitrail {

class GradRecorder;

struct Cost {
  double flops = 0;  // a multiply-add counts two
  double bytes = 0;  // every input read once, every output written once
};

// Which dims must be whole on a rank. Any other dim s may be sharded: each input that has s is split along
// it, the output is split along s if it has s, and is otherwise a partial sum.
struct DimsRule {
  std::string_view whole;
  bool jointly_linear = false;  // f(a + b) = f(a) + f(b) over all inputs at once: partial sums pass through
};

using DescSpan = std::span<const TensorDesc>;

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string_view kind() const = 0;
  virtual std::vector<TensorDesc> infer(DescSpan ins) const = 0;  // throws Error when the inputs do not fit
  virtual DimsRule dims() const = 0;

  virtual double flops(DescSpan ins, DescSpan outs) const;  // default: one per output element
  Cost cost(DescSpan ins, DescSpan outs) const;
  virtual std::string attributes() const { return {}; }  // "eps=1e-06", for the printer
  // The input whose storage output 0 may take over when nothing reads it later; -1: none.
  virtual int in_place_input() const { return -1; }
  // Inputs the op writes: persistent values that it must leave changed. A node with any is never dropped.
  virtual std::vector<int> updates() const { return {}; }

  // Records the nodes that turn the gradient of the output into those of the inputs that want one.
  // Default: Error, the op has none.
  virtual void grad(GradRecorder& recorder) const;
};

using OpPtr = std::shared_ptr<const Op>;

}  // namespace vitrail
