// Says which bytes of an arena are taken during which moments, and the lowest that are free for a span of
// moments. It is a segment tree over the moments: blocks that lie side by side for as long as a branch lasts
// are one range, so that queries do not slow down with the number of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace vitrail {

class Occupancy {
 public:
  // Makes an empty arena with moments 0 to `moments` - 1.
  explicit Occupancy(int moments);

  // Returns the lowest offset at which `bytes` bytes are free from moment `first` to moment `last`, both
  // included.
  size_t lowest_free(int first, int last, size_t bytes);
  void take(int first, int last, size_t begin, size_t end);

  // The number of ranges visited so far.
  int64_t steps() const { return steps_; }

 private:
  using Ranges = std::map<size_t, size_t>;  // begin and end, disjoint and not even touching
  struct Branch {
    Ranges all_through;  // taken for as long as the branch lasts, and not for its parent
    Ranges ever;         // taken at any moment of it, except what `all_through` of its parents holds
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
