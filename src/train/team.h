// The ranks of a run agree here from step to step on numbers summed over ranks, decisions that one rank asks
// for and all follow, and what the first rank alone has seen. A run of one rank agrees with itself at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dist/mesh_communicators.h"

namespace vitrail {

class Team {
 public:
  explicit Team(MeshCommunicators* ranks) : ranks_(ranks) {}

  bool alone() const { return ranks_ == nullptr || ranks_->mesh().world() == 1; }
  // Returns whether this rank writes the run's files and talks.
  bool leads() const { return alone() || ranks_->mesh().rank == 0; }
  int rank() const { return alone() ? 0 : ranks_->mesh().rank; }
  int size() const { return alone() ? 1 : ranks_->mesh().world(); }

  // Sums each number over all ranks.
  void sum(std::span<double> numbers) const;
  // The numbers of all ranks, as many of each, one rank after another.
  std::vector<double> gather(std::span<const double> mine) const;
  std::vector<int64_t> gather(std::span<const int64_t> mine) const;
  // The texts of all ranks, by rank.
  std::vector<std::string> texts_of_all(const std::string& mine) const;
  // Returns whether any rank says so.
  bool any(bool mine) const;
  // The number that the leader has.
  double from_leader(double mine) const;
  // Every rank has come this far.
  void wait() const;
  // The rows of all ranks that have other images, one after another; `rows` of each rank.
  std::vector<float> gather_rows(std::span<const float> mine, std::span<const int64_t> rows) const;

 private:
  MeshCommunicators* ranks_;
};

}  // namespace vitrail
