#include "train/part_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace vitrail {

namespace {

constexpr size_t kMostDims = 5;
// A part travels as the range of its elements, and (local, offset) of each dim.
constexpr size_t kPartWords = 2 * kMostDims + 2;

void append(std::vector<int64_t>& words, const HeldPart& held) {
  const size_t end = words.size() + kPartWords;
  words.insert(words.end(), {held.first, held.count});
  for (const Dim& dim : held.part) words.insert(words.end(), {dim.local, dim.offset});
  words.resize(end);
}

}  // namespace

bool HeldPart::is_whole() const {
  return count == part.elems() &&
         std::all_of(part.begin(), part.end(), [](const Dim& dim) { return dim.local == dim.extent; });
}

HeldPart held_of(const PersistentValue& value) {
  if (value.logical.rank() == 0) return {value.desc.shape, 0, value.desc.elems()};
  return {value.logical, value.desc.shape[0].offset, value.desc.elems()};
}

PartTable::PartTable(const PersistentLayout& layout, Communicator& world)
    : layout_(layout), ranks_(static_cast<size_t>(world.size())) {
  Words mine;
  for (const PersistentValue& value : layout.values()) {
    const HeldPart held = held_of(value);
    VT_CHECK(held.part.rank() <= kMostDims, "%s has too many dims", value.name.c_str());
    append(mine, held);
  }
  all_.resize(mine.size() * ranks_);
  world.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kI64,
             .in = mine.data(),
             .out = all_.data(),
             .counts = std::vector<size_t>(ranks_, mine.size())});
}

PartTable::Words PartTable::words(size_t value, int rank) const {
  const size_t at = (static_cast<size_t>(rank) * layout_.values().size() + value) * kPartWords;
  const auto first = all_.begin() + static_cast<std::ptrdiff_t>(at);
  return {first, first + kPartWords};
}

HeldPart PartTable::part(size_t value, int rank) const {
  const Words found = words(value, rank);
  const Shape like = held_of(layout_.values()[value]).part;
  std::vector<Dim> dims(like.begin(), like.end());
  for (size_t i = 0; i < dims.size(); ++i)
    dims[i].local = found[2 * i + 2], dims[i].offset = found[2 * i + 3];
  return {Shape(std::move(dims)), found[0], found[1]};
}

std::vector<int> PartTable::senders(size_t value) const {
  std::set<Words> known;
  std::vector<int> senders;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
    const Words found = words(value, rank);
    if (found[1] > 0 && known.insert(found).second) senders.push_back(rank);
  }
  return senders;
}

std::vector<std::vector<int>> PartTable::holders(size_t value) const {
  std::map<Words, std::vector<int>> groups;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
    const Words found = words(value, rank);
    if (found[1] > 0) groups[found].push_back(rank);
  }
  std::vector<std::vector<int>> all;
  for (auto& [part, ranks] : groups) all.push_back(std::move(ranks));
  return all;
}

std::vector<size_t> PartTable::written_by(int rank, std::span<const size_t> values) const {
  std::vector<size_t> load(ranks_), mine;
  for (const size_t value : values) {
    std::map<Words, std::vector<size_t>> holders;
    for (size_t r = 0; r < ranks_; ++r) holders[words(value, static_cast<int>(r))].push_back(r);
    for (const auto& [part, among] : holders) {
      if (part[1] == 0) continue;
      const size_t writer = *std::min_element(among.begin(), among.end(),
                                              [&](size_t a, size_t b) { return load[a] < load[b]; });
      load[writer] += static_cast<size_t>(part[1]) * size_of(layout_.values()[value].desc.dtype);
      if (writer == static_cast<size_t>(rank)) mine.push_back(value);
    }
  }
  return mine;
}

}  // namespace vitrail
