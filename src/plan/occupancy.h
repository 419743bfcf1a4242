// Which bytes of an arena are given away during which moments, and the lowest ones that are free for a while.
// A tree over the moments: where blocks lie side by side for as long as a branch lasts they are one range, so
// that neither question nor answer takes longer for a hundred of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace vitrail {

class Occupancy {
 public:
  // Moments 0 to `moments` - 1.
  explicit Occupancy(int moments);

  // Where `bytes` bytes are free from moment `first` to moment `last`, both included: the lowest such offset.
  size_t lowest_free(int first, int last, size_t bytes);
  void take(int first, int last, size_t begin, size_t end);

  // Ranges looked at so far.
  int64_t steps() const { return steps_; }

 private:
  using Ranges = std::map<size_t, size_t>;  // begin and end, disjoint and not even touching
  struct Branch {
    Ranges all_through;  // taken for as long as the branch lasts, and not for its parent
    Ranges ever;         // taken at any moment of it, but for what `all_through` of its parents holds
  };

  template <typename Whole, typename Part>
  void visit(int first, int last, const Whole& whole, const Part& part);
  static void add(Ranges& ranges, size_t begin, size_t end);
  size_t next_free(const Ranges& ranges, size_t offset, size_t bytes);

  int leaves_ = 1;
  std::vector<Branch> branches_;  // the children of i are 2 i and 2 i + 1
  int64_t steps_ = 0;
};

}  // namespace vitrail
