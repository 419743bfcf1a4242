#include "train/part_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "train/agreement.h"

namespace vitrail {

namespace {

// A value travels as a line: its name, what it is, the range of its elements, and each dim.
std::string line_of(const PersistentValue& value) {
  const HeldPart held = held_of(value);
  std::ostringstream line;
  line << value.name << ' ' << static_cast<int>(value.desc.dtype) << ' ' << static_cast<int>(value.kind)
       << ' ' << static_cast<int>(value.category) << ' ' << value.contained << ' ' << value.is_container
       << ' ' << held.first << ' ' << held.count;
  for (const Dim& dim : held.part)
    line << ' ' << dim.name << ' ' << dim.extent << ' ' << dim.local << ' ' << dim.offset;
  return line.str();
}

struct Described {
  PersistentValue value;
  HeldPart held;
};
Described described_by(const std::string& text) {
  std::istringstream line(text);
  Described d;
  int dtype = 0, kind = 0, category = 0;
  line >> d.value.name >> dtype >> kind >> category >> d.value.contained >> d.value.is_container >>
      d.held.first >> d.held.count;
  std::vector<Dim> dims;
  char name = 0;
  for (Dim dim(' ', 0); line >> name >> dim.extent >> dim.local >> dim.offset;) {
    dim.name = name;
    dims.push_back(dim);
  }
  d.held.part = Shape(std::move(dims));
  d.value.desc = {static_cast<DType>(dtype), d.held.part};
  d.value.kind = static_cast<ValueKind>(kind);
  d.value.category = static_cast<Category>(category);
  return d;
}

// Parts that are the same have the same words.
std::vector<int64_t> words_of(const HeldPart& held) {
  std::vector<int64_t> words = {held.first, held.count};
  for (const Dim& dim : held.part) words.insert(words.end(), {dim.local, dim.offset});
  return words;
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
    : ranks_(static_cast<size_t>(world.size())) {
  std::string mine;
  for (const PersistentValue& value : layout.values()) mine += line_of(value) + "\n";
  const std::vector<std::string> all = from_all(world, mine);
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (const std::string_view line : split(all[rank], '\n'))
      if (!line.empty()) add_line(std::string(line), rank);
}

void PartTable::add_line(const std::string& line, size_t rank) {
  Described found = described_by(line);
  const auto [place, fresh] = index_.try_emplace(found.value.name, values_.size());
  if (fresh) {
    values_.push_back(std::move(found.value));
    parts_.emplace_back(ranks_);
  }
  parts_[place->second][rank] = std::move(found.held);
}

std::optional<size_t> PartTable::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<int> PartTable::senders(size_t value) const {
  std::set<std::vector<int64_t>> known;
  std::vector<int> senders;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
    const HeldPart held = part(value, rank);
    if (held.count > 0 && known.insert(words_of(held)).second) senders.push_back(rank);
  }
  return senders;
}

std::vector<std::vector<int>> PartTable::holders(size_t value) const {
  std::map<std::vector<int64_t>, std::vector<int>> groups;
  for (int rank = 0; rank < static_cast<int>(ranks_); ++rank) {
    const HeldPart held = part(value, rank);
    if (held.count > 0) groups[words_of(held)].push_back(rank);
  }
  std::vector<std::vector<int>> all;
  all.reserve(groups.size());
  for (auto& [part, ranks] : groups) all.push_back(std::move(ranks));
  return all;
}

std::vector<size_t> PartTable::written_by(int rank, std::span<const size_t> values) const {
  std::vector<size_t> load(ranks_), mine;
  for (const size_t value : values) {
    std::map<std::vector<int64_t>, std::vector<size_t>> holders;
    for (size_t r = 0; r < ranks_; ++r) holders[words_of(part(value, static_cast<int>(r)))].push_back(r);
    for (const auto& [part, among] : holders) {
      if (part[1] == 0) continue;
      const size_t writer = *std::min_element(among.begin(), among.end(),
                                              [&](size_t a, size_t b) { return load[a] < load[b]; });
      load[writer] += static_cast<size_t>(part[1]) * size_of(values_[value].desc.dtype);
      if (writer == static_cast<size_t>(rank)) mine.push_back(value);
    }
  }
  return mine;
}

}  // namespace vitrail
