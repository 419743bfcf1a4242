// Describes how the ranks of a run share its work, as plain data: the sizes of the mesh's axes and this
// rank's place among them. Ranks are numbered with tp innermost, then sp, dp and pp, so that neighbours hold
// parts of one model, and the ranks of a stage follow each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace vitrail {

// dp: other samples; tp: other heads and MLP columns; sp: other tokens; pp: other blocks, the stages of a
// pipeline.
enum class Axis : uint8_t { kData, kTensor, kSequence, kPipeline };
inline constexpr size_t kAxisCount = 4;
inline constexpr Axis kAxes[] = {Axis::kData, Axis::kTensor, Axis::kSequence, Axis::kPipeline};
const char* to_string(Axis axis);  // "dp"

// A set of axes: a collective runs among the ranks that differ in these coordinates alone.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(Axis axis) : bits_(static_cast<uint8_t>(1u << static_cast<unsigned>(axis))) {}

  constexpr bool has(Axis axis) const { return (bits_ & AxisSet(axis).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr AxisSet with(AxisSet other) const { return from_bits(bits_ | other.bits_); }
  constexpr unsigned bits() const { return bits_; }
  static constexpr AxisSet from_bits(unsigned bits) {
    AxisSet set;
    set.bits_ = static_cast<uint8_t>(bits);
    return set;
  }
  bool operator==(const AxisSet&) const = default;
  bool operator<(const AxisSet& other) const { return bits_ < other.bits_; }

 private:
  uint8_t bits_ = 0;
};
inline constexpr unsigned kAxisSets = 1u << kAxisCount;
std::string to_string(AxisSet axes);  // "dp x tp"

struct Mesh {
  std::array<int, kAxisCount> sizes = {1, 1, 1, 1};  // 0 stands for an axis that is not used: one rank
  int rank = 0;

  int size(Axis axis) const { return std::max(1, sizes[static_cast<size_t>(axis)]); }
  int size(AxisSet axes) const;
  int world() const { return size(AxisSet::from_bits(kAxisSets - 1)); }
  int coordinate(Axis axis) const;
  // The place of this rank among those that differ from it in `axes` alone; tp counts fastest.
  int coordinate(AxisSet axes) const;
  // The number of the group of those ranks: the coordinates in all other axes.
  int group(AxisSet axes) const;
  Mesh of_rank(int other) const { return {sizes, other}; }
  bool operator==(const Mesh&) const = default;
};
std::string to_string(const Mesh& mesh);  // "dp=2 tp=4"; axes of one are left out

}  // namespace vitrail
