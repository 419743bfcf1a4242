#include "tensor/mesh.h"

namespace vitrail {

namespace {
// The order in which coordinates count, fastest first.
constexpr Axis kInnermostFirst[] = {Axis::kTensor, Axis::kSequence, Axis::kData, Axis::kPipeline};
}  // namespace

const char* to_string(Axis axis) {
  constexpr const char* kNames[] = {"dp", "tp", "sp", "pp"};
  return kNames[static_cast<size_t>(axis)];
}

std::string to_string(AxisSet axes) {
  std::string text;
  for (const Axis axis : kAxes)
    if (axes.has(axis)) text += std::string(text.empty() ? "" : " x ") + to_string(axis);
  return text;
}

int Mesh::size(AxisSet axes) const {
  int product = 1;
  for (const Axis axis : kAxes)
    if (axes.has(axis)) product *= size(axis);
  return product;
}

int Mesh::coordinate(Axis axis) const {
  int left = rank;
  for (const Axis inner : kInnermostFirst) {
    if (inner == axis) return left % size(axis);
    left /= size(inner);
  }
  return 0;
}

int Mesh::coordinate(AxisSet axes) const {
  int place = 0, step = 1;
  for (const Axis axis : kInnermostFirst) {
    if (!axes.has(axis)) continue;
    place += coordinate(axis) * step;
    step *= size(axis);
  }
  return place;
}

int Mesh::group(AxisSet axes) const {
  unsigned others = 0;
  for (const Axis axis : kAxes)
    if (!axes.has(axis)) others |= AxisSet(axis).bits();
  return coordinate(AxisSet::from_bits(others));
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (const Axis axis : kAxes)
    if (mesh.size(axis) > 1)
      text += std::string(text.empty() ? "" : " ") + to_string(axis) + "=" + std::to_string(mesh.size(axis));
  return text.empty() ? "dp=1" : text;
}

}  // namespace vitrail
