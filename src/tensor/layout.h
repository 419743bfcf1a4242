// Describes how a value lies on the ranks of a mesh, axis by axis: whole on each, a part of one dim on each,
// or a partial sum on each, the value being the sum of them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "tensor/mesh.h"
#include "tensor/shape.h"

namespace vitrail {

struct Placed {
  enum Kind : uint8_t { kReplicated, kShard, kPartial };
  Kind kind = kReplicated;
  char dim = 0;  // of kShard

  static constexpr Placed shard(char dim) { return {kShard, dim}; }
  static constexpr Placed partial() { return {kPartial, 0}; }
  bool operator==(const Placed&) const = default;
  bool operator<(const Placed& other) const { return std::tie(kind, dim) < std::tie(other.kind, other.dim); }
};

struct Layout {
  std::array<Placed, kAxisCount> axes;

  Placed& operator[](Axis axis) { return axes[static_cast<size_t>(axis)]; }
  const Placed& operator[](Axis axis) const { return axes[static_cast<size_t>(axis)]; }
  AxisSet partial() const;
  bool operator==(const Layout&) const = default;
};
std::string to_string(const Layout& layout);  // "dp:S(B) tp:P"; axes on which it is replicated are left out

// The parts into which ranks cut a range of `count`: part r is [cuts[r], cuts[r + 1]). By default r * count /
// parts, rounded down, in multiples of `unit`; a part may be empty.
std::vector<int64_t> cut_points(int64_t count, int parts, int64_t unit = 1);

// Part `index` of a dim by cut points over its local range.
Dim part_of(const Dim& dim, const std::vector<int64_t>& cuts, int index);

// The shape with every dim whole.
Shape whole_of(const Shape& part);

// Copies the elements that `part` describes out of the whole value, or into it.
void copy_out_part(const Shape& part, size_t elem_bytes, const void* whole, void* target);
void copy_in_part(const Shape& part, size_t elem_bytes, const void* source, void* whole);

}  // namespace vitrail
