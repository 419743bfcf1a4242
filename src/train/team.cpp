#include "train/team.h"

#include <numeric>

#include "base/error.h"
#include "train/agreement.h"

namespace vitrail {

namespace {
template <typename T>
std::vector<T> gathered(Communicator& group, DType dtype, std::span<const T> mine) {
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<T> all(ranks * mine.size());
  group.run({.kind = Collective::Kind::kAllGather,
             .dtype = dtype,
             .in = mine.data(),
             .out = all.data(),
             .counts = std::vector<size_t>(ranks, mine.size())});
  return all;
}
}  // namespace

void Team::sum(std::span<double> numbers) const {
  if (alone()) return;
  ranks_->world().run({.kind = Collective::Kind::kAllReduce,
                       .dtype = DType::kF64,
                       .in = numbers.data(),
                       .out = numbers.data(),
                       .counts = {numbers.size()}});
}

std::vector<double> Team::gather(std::span<const double> mine) const {
  if (alone()) return {mine.begin(), mine.end()};
  return gathered(ranks_->world(), DType::kF64, mine);
}

std::vector<int64_t> Team::gather(std::span<const int64_t> mine) const {
  if (alone()) return {mine.begin(), mine.end()};
  return gathered(ranks_->world(), DType::kI64, mine);
}

std::vector<std::string> Team::texts_of_all(const std::string& mine) const {
  return alone() ? std::vector<std::string>{mine} : from_all(ranks_->world(), mine);
}

bool Team::any(bool mine) const {
  if (alone()) return mine;
  double votes = mine ? 1 : 0;
  sum({&votes, 1});
  return votes > 0;
}

double Team::from_leader(double mine) const {
  return alone() ? mine : from_first(ranks_->world(), mine);
}

void Team::wait() const {
  if (!alone()) ranks_->world().barrier();
}

std::vector<float> Team::gather_rows(std::span<const float> mine, std::span<const int64_t> rows) const {
  if (alone() || rows.size() == 1) return {mine.begin(), mine.end()};
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  Communicator& group = ranks_->over(Axis::kData);
  const auto own = static_cast<size_t>(rows[static_cast<size_t>(group.rank())]);
  VT_CHECK(own > 0 && mine.size() % own == 0, "%zu numbers in %zu rows", mine.size(), own);
  const size_t each = mine.size() / own;
  std::vector<size_t> counts;
  for (const int64_t count : rows) counts.push_back(static_cast<size_t>(count) * each);
  std::vector<float> all(static_cast<size_t>(total) * each);
  group.run({.kind = Collective::Kind::kAllGather,
             .dtype = DType::kF32,
             .in = mine.data(),
             .out = all.data(),
             .counts = counts});
  return all;
}

}  // namespace vitrail
