// Which part of every persistent value each rank holds, and which rank hands a part on where several hold the
// same. Knows neither files nor what the values mean.
#pragma once

#include <span>

#include "dist/communicator.h"
#include "plan/persistent_layout.h"

namespace vitrail {

// What a rank holds of a value: a part of its shape and, with ZeRO, a range of that part's elements.
struct HeldPart {
  Shape part;
  int64_t first = 0, count = 0;

  bool is_whole() const;
};
HeldPart held_of(const PersistentValue& value);

class PartTable {
 public:
  // Asks every rank what it holds; all of them call it at the same time. Their layouts list the same values.
  PartTable(const PersistentLayout& layout, Communicator& world);

  HeldPart part(size_t value, int rank) const;
  // The ranks that together hold all of a value, each part once; those with nothing are left out.
  std::vector<int> senders(size_t value) const;
  // The ranks that hold the same elements of a value, group by group; those with nothing are left out.
  std::vector<std::vector<int>> holders(size_t value) const;
  // Which of these values the rank writes: every part is written by one of those that hold it, by the one
  // that has the fewest bytes to write so far.
  std::vector<size_t> written_by(int rank, std::span<const size_t> values) const;

 private:
  using Words = std::vector<int64_t>;  // a part as it travels
  Words words(size_t value, int rank) const;

  const PersistentLayout& layout_;
  size_t ranks_;
  Words all_;  // by rank, then by value
};

}  // namespace vitrail
