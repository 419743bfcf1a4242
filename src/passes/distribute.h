// Rewrites a program of whole values into the program of one rank of a mesh: gives every value a layout per
// axis and records the collective where a consumer needs another one. Nothing is searched. Inputs and
// persistent values are pinned; from there layouts follow the dims rules of the ops:
//   dp  B of inputs is sharded, and so is all that has B; a gradient comes out as a partial sum
//   tp  persistent values with H (heads) or F (MLP columns) are sharded along it; the residual stream is whole,
//       or sharded along N (Megatron's sequence parallelism)
//   sp  the residual stream is sharded along N in the blocks; attention, which needs N whole, along H (Ulysses)
// Runs after precision, before recompute and fuse.
#pragma once

#include <map>

#include "graph/program.h"
#include "tensor/layout.h"

namespace vitrail {

struct Distribution {
  Mesh mesh;
  bool tokens_on_tp = false;  // the residual stream is sharded along N over tp
  int64_t batch_unit = 1;     // B is cut in multiples of it

  bool active() const { return mesh.world() > 1; }
};

// The layout of an input or persistent value.
Layout pinned_layout(const Value& value, const Distribution& how);
// The part of a shape that this rank holds; partial sums have the whole shape.
Shape local_shape(const Shape& whole, const Layout& layout, const Distribution& how);
// The cut points of a dim along an axis.
std::vector<int64_t> cuts_of(const Dim& dim, Axis axis, const Distribution& how);

struct Distributed {
  Program program;
  std::map<std::string, Layout> gradients;  // of the gradient sums, by their names
};

Distributed distribute(const Program& program, const Distribution& how);

// Throws Error(kConfig) with the numbers when a model's heads cannot be cut.
void require_divisible_heads(int64_t heads, const Mesh& mesh);

}  // namespace vitrail
