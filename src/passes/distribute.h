// Rewrites a program of whole values into the program of one rank of a mesh: gives every value a layout per
// axis and records the collective where a consumer needs another one. Nothing is searched: passes/pins.h
// fixes a few layouts, the others follow by the dims rules of the ops. A partial sum goes on as far as ops
// are linear in it, then becomes what the stream is pinned to. Runs after precision, before recompute and
// fuse.
#pragma once

#include <map>

#include "graph/program.h"
#include "tensor/layout.h"

namespace vitrail {

// Says where the ranks of an axis cut a dim: part r is [cuts[r], cuts[r + 1]). It holds for every value whose
// dim has cuts.back() elements; others are cut in equal parts.
struct CutTable {
  Axis axis;
  char dim;
  std::vector<int64_t> cuts;
};

struct Distribution {
  Mesh mesh;
  bool tokens_on_tp = false;  // the residual stream is sharded along N over tp
  int64_t batch_unit = 1;     // B is cut in multiples of it
  std::vector<CutTable> cuts = {};

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
  std::vector<Layout> layouts;              // by value
  std::vector<int> origins;                 // by node: that of the source; -1: it moves a value
};

// Throws Error(kConfig) when a table of cuts does not fit the mesh.
Distributed distribute(const Program& program, const Distribution& how);

// Throws Error(kConfig) with the numbers when a model's heads cannot be cut.
void require_divisible_heads(int64_t heads, const Mesh& mesh);

}  // namespace vitrail
