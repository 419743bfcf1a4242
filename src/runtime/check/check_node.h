// The check behind --check ref: repeats one node on the reference backend, in f64, from copies of its inputs,
// and compares the results.
#pragma once

#include <vector>

#include "graph/program.h"
#include "runtime/check/noise.h"
#include "runtime/rank_context.h"
#include "tensor/buffer.h"

namespace vitrail {

class NodeCheck {
 public:
  // `rounding` describes the kernels that run the node.
  NodeCheck(const Node& node, const Program& program, Rounding rounding, RankContext& rank);

  // Adds the inputs in the node's order. Those that the node may overwrite are copied.
  void add_input(const TensorView& view);
  void add_persistent(const TensorView& plain, RankContext& owner);  // owner: of `plain`'s memory

  // The node's results as the reference has them, with how far correct ones of these types may be off: its
  // outputs, then the inputs it updates. Called once.
  std::vector<Known> expected(const std::vector<DType>& types);
  // Compares the node's results after it ran: its outputs, then the inputs it updates. Throws Error(kCheck)
  // naming node, shapes, model line and the worst difference.
  void compare(const std::vector<TensorView>& found);

 private:
  TensorView copy(const TensorView& view, RankContext& owner);  // in host memory
  TensorView widened(const TensorView& view);                   // floats become f64
  std::vector<TensorView> run_reference(const Op& op, std::vector<TensorView> ins);
  void expect_near(const Known& wanted, const TensorView& found);

  const Node& node_;
  const Program& program_;
  const Rounding rounding_;
  RankContext& rank_;
  std::vector<TensorView> ins_;
  std::vector<Buffer> copies_;
};

}  // namespace vitrail
