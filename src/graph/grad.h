// The interface through which an op records its gradient: the node's values, the gradient of its output, and
// where the gradients of its inputs go. The differentiate pass implements it; every op in ops/ uses it.
#pragma once

#include "graph/op.h"
#include "graph/program.h"

namespace vitrail {

// Returns the name of a parameter's gradient sum.
inline std::string gradient_name(const std::string& parameter) {
  return "grad/" + parameter;
}

class GradRecorder {
 public:
  virtual ~GradRecorder() = default;

  virtual ValueId in(size_t i) const = 0;
  virtual ValueId out() const = 0;
  virtual ValueId dout() const = 0;        // the gradient of the output
  virtual bool wants(size_t i) const = 0;  // whether input i needs a gradient; none may be computed otherwise
  virtual const TensorDesc& desc(ValueId id) const = 0;

  // Records a node; its name is the forward node's with `.suffix`.
  virtual std::vector<ValueId> add_all(OpPtr op, std::vector<ValueId> ins, const char* suffix) = 0;
  ValueId add(OpPtr op, std::vector<ValueId> ins, const char* suffix) {
    return add_all(std::move(op), std::move(ins), suffix).front();
  }
  // Usage: add<GeluGradOp>({x, dy}, "dx", arguments of the op...)
  template <typename T, typename... Args>
  ValueId add(std::vector<ValueId> ins, const char* suffix, Args&&... args) {
    return add(std::make_shared<T>(std::forward<Args>(args)...), std::move(ins), suffix);
  }
  // Sets the gradient of input i, or adds one more term to it.
  virtual void give(size_t i, ValueId gradient) = 0;
};

}  // namespace vitrail
