// Says which part of every persistent value each rank holds, and which rank hands a part on where several
// hold the same. Knows neither files nor what the values mean.
#pragma once

#include <optional>
#include <span>

#include "dist/communicator.h"
#include "plan/persistent_layout.h"

namespace vitrail {

// Says what a rank holds of a value: a part of its shape and, with ZeRO, a range of that part's elements.
struct HeldPart {
  Shape part;
  int64_t first = 0, count = 0;

  bool is_whole() const;
};
HeldPart held_of(const PersistentValue& value);

class PartTable {
 public:
  // Asks every rank what it holds; all of them call it at the same time. The stages of a pipeline hold other
  // values each.
  PartTable(const PersistentLayout& layout, Communicator& world);

  // Every value that some rank holds, as the first of its holders has it; the same list on every rank.
  const std::vector<PersistentValue>& values() const { return values_; }
  std::optional<size_t> find(const std::string& name) const;
  HeldPart part(size_t value, int rank) const { return parts_[value][static_cast<size_t>(rank)]; }
  // The ranks that together hold all of a value, each part once; those with nothing are left out.
  std::vector<int> senders(size_t value) const;
  // The ranks that hold the same elements of a value, group by group; those with nothing are left out.
  std::vector<std::vector<int>> holders(size_t value) const;
  // Returns which of these values the rank writes: every part is written by one of those that hold it, by the
  // one that has the fewest bytes to write so far.
  std::vector<size_t> written_by(int rank, std::span<const size_t> values) const;

 private:
  void add_line(const std::string& line, size_t rank);

  size_t ranks_;
  std::vector<PersistentValue> values_;
  std::map<std::string, size_t> index_;
  std::vector<std::vector<HeldPart>> parts_;  // by value, then by rank; of no elements where it holds nothing
};

}  // namespace vitrail
