// Repeats one node on the reference backend from copies of its inputs and compares. Used by --check ref.
#pragma once

#include <vector>

#include "graph/program.h"
#include "runtime/rank_context.h"
#include "tensor/buffer.h"

namespace vitrail {

class NodeCheck {
 public:
  NodeCheck(const Node& node, const Program& program, RankContext& rank);

  // In the order of the node's inputs. Computed inputs are copied: the node may write over them.
  void add_input(const TensorView& view);
  void add_parameter(const TensorView& plain) { ins_.push_back(plain); }

  // Throws Error(kCheck) naming node, shapes, model line and the largest difference.
  void compare(const TensorView& found);

 private:
  TensorView run_reference(const Op& op, std::vector<TensorView> ins);

  const Node& node_;
  const Program& program_;
  RankContext& rank_;
  std::vector<TensorView> ins_;
  std::vector<Buffer> copies_;
};

}  // namespace vitrail
