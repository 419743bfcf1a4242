#include "tensor/layout.h"

#include "base/checked.h"

namespace vitrail {

AxisSet Layout::partial() const {
  AxisSet set;
  for (const Axis axis : kAxes)
    if ((*this)[axis].kind == Placed::kPartial) set = set.with(axis);
  return set;
}

std::string to_string(const Layout& layout) {
  std::string text;
  for (const Axis axis : kAxes) {
    const Placed& placed = layout[axis];
    if (placed.kind == Placed::kReplicated) continue;
    text += std::string(text.empty() ? "" : " ") + to_string(axis) + ":";
    text += placed.kind == Placed::kPartial ? "P" : std::string("S(") + placed.dim + ")";
  }
  return text;
}

std::vector<int64_t> cut_points(int64_t count, int parts, int64_t unit) {
  const int64_t units = ceil_div(count, unit);
  std::vector<int64_t> cuts;
  for (int64_t r = 0; r < parts; ++r) cuts.push_back(r * units / parts * unit);
  cuts.push_back(count);
  return cuts;
}

Dim part_of(const Dim& dim, const std::vector<int64_t>& cuts, int index) {
  const auto r = static_cast<size_t>(index);
  Dim part = dim;
  part.offset = dim.offset + cuts[r];
  part.local = cuts[r + 1] - cuts[r];
  return part;
}

}  // namespace vitrail
