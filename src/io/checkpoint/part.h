// A part of a tensor as one rank holds it: a box of its dims and, of the box's elements in order, a range.
// Knows neither ranks nor files.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"

namespace vitrail {

struct TensorPart {
  std::vector<int64_t> shape;          // of the whole tensor, outermost dim first
  std::vector<int64_t> offset, local;  // the box: [offset, offset + local) of each dim
  int64_t first = 0, count = 0;        // of the box's elements, row-major

  static TensorPart whole(const std::vector<int64_t>& shape);
  int64_t whole_elems() const;
  int64_t box_elems() const;
  bool operator==(const TensorPart&) const = default;
};

Json to_json(const TensorPart& part);
// Throws Error(kData) for anything that is no part of a tensor.
TensorPart part_from(const Json& json);

// Elements that are neighbours both in the whole tensor and in what a part holds of it.
struct ElementRun {
  int64_t from = 0;  // the first, in the whole tensor
  int64_t at = 0;    // the same one, among those of the part
  int64_t count = 0;
};

// Returns what the part holds of elements [begin, end) of the whole tensor, ascending.
std::vector<ElementRun> runs_in(const TensorPart& part, int64_t begin, int64_t end);
inline std::vector<ElementRun> runs_of(const TensorPart& part) {
  return runs_in(part, 0, part.whole_elems());
}

}  // namespace vitrail
