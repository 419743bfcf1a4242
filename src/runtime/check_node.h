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

  // In the order of the node's inputs. Those the node may write over are copied.
  void add_input(const TensorView& view);
  void add_persistent(const TensorView& plain, RankContext& owner);  // of `plain`'s memory

  // Throw Error(kCheck) naming node, shapes, model line and the largest difference.
  void compare_output(size_t output, const TensorView& found);
  void compare_updated(int input, const TensorView& found);

 private:
  TensorView copy(const TensorView& view, RankContext& owner);  // in the host's memory
  void run();
  std::vector<TensorView> run_reference(const Op& op, std::vector<TensorView> ins);
  void compare(const TensorView& expected, const TensorView& found) const;

  const Node& node_;
  const Program& program_;
  RankContext& rank_;
  std::vector<TensorView> ins_, outs_;
  bool ran_ = false;
  std::vector<Buffer> copies_;
};

}  // namespace vitrail
