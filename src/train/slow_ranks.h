// Notices a rank that has become slow: slower than it was itself, and more so than the others. Pure
// bookkeeping over the times that ranks exchange after every update.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace vitrail {

struct SlowRank {
  int rank = 0;
  double now_s = 0, before_s = 0;  // an update's own work

  std::string text() const;
};

class SlowRanks {
 public:
  static constexpr int kUsual = 10;  // updates after the first by which a rank is known
  static constexpr int kLong = 20;   // updates in a row that make it slow

  explicit SlowRanks(int ranks) : rows_(static_cast<size_t>(ranks)) {}

  // Takes the work of one update, by rank; returns those that have just become slow.
  std::vector<SlowRank> add(std::span<const double> seconds);
  // just_known() says whether the ranks have just become known, usual() how long an update takes each.
  bool just_known() const { return updates_ == kUsual + 1; }
  std::vector<double> usual() const;

 private:
  struct Row {
    std::vector<double> first;
    double usual_s = 0, sum_s = 0;
    int in_a_row = 0;
  };
  double shared_slowness(std::span<const double> seconds) const;

  std::vector<Row> rows_;
  int64_t updates_ = 0;
};

}  // namespace vitrail
