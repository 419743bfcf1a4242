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

// The sharding rule: which dims must be whole on a rank. Any other dim s may be sharded: each input that has
// s is split along it, the output is split along s if it has s, and is otherwise a partial sum.
struct DimsRule {
  std::string_view whole;
  bool jointly_linear = false;  // f(a + b) = f(a) + f(b) over all inputs at once: partial sums pass through
  unsigned linear_in = 0;       // bit i: linear in input i while the others stay as they are
  char with_batch = 0;          // a whole dim that may be cut where B is cut alike; 0: none
};
inline constexpr std::string_view kNormedDims =
    "DEFH";  // norms run over the width, the heads or the MLP's width
inline constexpr std::string_view kEveryDim = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

using DescSpan = std::span<const TensorDesc>;

// The types an op accepts in a program that computes in bf16 or f16.
enum class PrecisionRole {
  kAny,       // any type: element-wise and row-wise ops
  kCompute,   // the compute type: GEMMs and attention; their parameter gradients are f32
  kFull,      // f32: losses and sums over a step
  kLikeFirst  // all inputs in the type of the first
};

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string_view kind() const = 0;
  virtual std::vector<TensorDesc> infer(DescSpan ins) const = 0;  // throws Error when the inputs do not fit
  virtual DimsRule dims() const = 0;
  // Returns whether a kernel runs it; otherwise it is the executor's own, or a mere note about memory.
  virtual bool is_launched() const { return true; }

  virtual double flops(DescSpan ins, DescSpan outs) const;  // default: one per output element
  Cost cost(DescSpan ins, DescSpan outs) const;
  virtual std::string attributes() const { return {}; }  // "eps=1e-06", for the printer
  // The index of the input whose storage output 0 may reuse when nothing reads it later; -1: none.
  virtual int in_place_input() const { return -1; }
  // The inputs the op writes: persistent values that it updates. A node with any is never dropped. The list
  // lives as long as the op.
  virtual std::span<const int> updates() const { return {}; }
  // Returns whether a node must stay although it changes nothing and nothing reads it.
  virtual bool keeps() const { return false; }

  // The number of terms summed into one output element: the contracted extent of a GEMM, the row length of a
  // norm.
  virtual int64_t reduction_length(DescSpan) const { return 1; }
  virtual PrecisionRole precision_role() const { return PrecisionRole::kAny; }
  // The index of the GEMM's weight input, of which a parameter gets a copy in the compute type; -1: none.
  virtual int weight_input() const { return -1; }

  // Records the nodes that turn the gradient of the output into the gradients of the inputs that need one.
  // Default: an Error, since the op has no gradient.
  virtual void grad(GradRecorder& recorder) const;
};

using OpPtr = std::shared_ptr<const Op>;

// Returns 0..count-1, at most eight of them, for ops that write their first inputs.
std::span<const int> first_inputs(int count);

// Returns whether an op is of one of these classes: is<LinearOp, PatchEmbedOp>(*node.op).
template <typename... Ops>
bool is(const Op& op) {
  const std::string_view kind = op.kind();
  return ((kind == Ops::kKind) || ...);
}

}  // namespace vitrail
