#include "train/recombine.h"

#include <cmath>
#include <map>

#include "base/error.h"
#include "runtime/transfer.h"

namespace vitrail {

namespace {

// The coordinates of a rank in the axes along which a layout is of this kind.
int place_among(const Mesh& mesh, const Layout& layout, Placed::Kind kind) {
  int place = 0;
  for (const Axis axis : kAxes)
    if (layout[axis].kind == kind) place = place * mesh.size(axis) + mesh.coordinate(axis);
  return place;
}

bool holds(const Shape& part, size_t element) {
  for (size_t i = part.rank(); i-- > 0;) {
    const auto extent = static_cast<size_t>(part[i].extent);
    const auto at = static_cast<int64_t>(element % extent);
    if (at < part[i].offset || at >= part[i].offset + part[i].local) return false;
    element /= extent;
  }
  return true;
}

}  // namespace

Distribution Recombiner::of_rank(int rank) const {
  Distribution theirs = how_;
  theirs.mesh = how_.mesh.of_rank(rank);
  return theirs;
}

// Returns on the first rank what any rank has; on the others nothing after it was sent.
std::vector<std::byte> Recombiner::bytes_of(int rank, const TensorView& mine, size_t bytes) const {
  std::vector<std::byte> part(bytes);
  Communicator& world = rank_.ranks->world();
  if (rank == how_.mesh.rank) read_bytes(rank_, mine, part);
  if (rank == 0) return part;
  const bool sends = rank == how_.mesh.rank;
  world.run({.kind = sends ? Collective::Kind::kSend : Collective::Kind::kReceive,
             .dtype = DType::kU8,
             .in = sends ? part.data() : nullptr,
             .out = sends ? nullptr : part.data(),
             .counts = {bytes},
             .peer = sends ? 0 : rank});
  return part;
}

namespace {
using PartialSums = std::map<std::pair<int, int>, std::vector<double>>;  // by copy, then by partial sum

// Adds the partial sums of every copy up, and the magnitudes of the first copy's.
void add_up(const PartialSums& sums, size_t elems, Recombined& value) {
  value.magnitude.resize(elems);
  for (const auto& [key, sum] : sums) {
    value.copies.resize(std::max(value.copies.size(), static_cast<size_t>(key.first) + 1));
    std::vector<double>& copy = value.copies[static_cast<size_t>(key.first)];
    copy.resize(elems);
    for (size_t i = 0; i < elems; ++i) {
      copy[i] += sum[i];
      if (key.first == 0) value.magnitude[i] += std::abs(sum[i]);
    }
  }
}
}  // namespace

Recombined Recombiner::collect(const TensorView& mine, const Layout& layout, const Shape& whole) const {
  const DType dtype = mine.dtype();
  const size_t unit = size_of(dtype), elems = static_cast<size_t>(whole.elems());
  Recombined value{.desc = {dtype, whole}};
  PartialSums sums;
  for (int rank = 0; rank < how_.mesh.world(); ++rank) {
    if (!leads() && rank != how_.mesh.rank) continue;
    const Shape part = local_shape(whole, layout, of_rank(rank));
    const auto count = static_cast<size_t>(part.elems());
    VT_CHECK(rank != how_.mesh.rank || part.elems() == mine.desc().elems(), "%s in the place of %s",
             to_string(mine.desc()).c_str(), to_string(part).c_str());
    const std::vector<std::byte> bytes =
        count ? bytes_of(rank, mine, count * unit) : std::vector<std::byte>();
    if (!leads()) return value;
    const Mesh place = how_.mesh.of_rank(rank);
    const int copy = place_among(place, layout, Placed::kReplicated);
    value.ranks.resize(std::max(value.ranks.size(), static_cast<size_t>(copy) + 1));
    value.ranks[static_cast<size_t>(copy)].push_back(rank);
    if (copy == 0 && layout.partial().empty()) {
      value.raw.resize(elems * unit);
      copy_in_part(part, unit, bytes.data(), value.raw.data());
    }
    if (!is_float(dtype)) continue;
    std::vector<double> doubles(count);
    convert_floats(bytes.data(), dtype, doubles.data(), DType::kF64, count);
    std::vector<double>& sum = sums[{copy, place_among(place, layout, Placed::kPartial)}];
    sum.resize(elems);
    copy_in_part(part, sizeof(double), doubles.data(), sum.data());
  }
  value.summed = static_cast<size_t>(how_.mesh.size(layout.partial()));
  add_up(sums, elems, value);
  return value;
}

std::string Recombiner::holders(const Recombined& value, const Layout& layout, size_t copy,
                                size_t element) const {
  std::string text;
  size_t count = 0;
  for (const int rank : value.ranks[copy]) {
    if (!holds(local_shape(value.desc.shape, layout, of_rank(rank)), element)) continue;
    text += strf("%s%d", count++ ? ", " : "", rank);
  }
  return (count == 1 ? "rank " : "ranks ") + text;
}

}  // namespace vitrail
