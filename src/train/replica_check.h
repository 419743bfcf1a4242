// Checks whether the ranks that hold the same part of a persistent value hold the same bytes, by a hash of
// each and one exchange of the hashes. Parameters, averages, optimizer state and low-precision copies are
// compared; gradient sums, which are zero between updates, and data are not. Knows neither when to compare
// nor what a difference means for the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/team.h"
#include "train/train_step.h"

namespace vitrail {

// The first value in which ranks differ.
struct ReplicaDifference {
  std::string value;
  std::vector<int> holders;  // the ranks that should hold the same bytes of it
  std::vector<int> odd;      // those among them that most others contradict; empty: no majority
  size_t values = 0;         // in which any ranks differ
};

class ReplicaCheck {
 public:
  // All ranks make one at the same time; `step` must outlive it.
  ReplicaCheck(const TrainStep& step, const Team& team);

  // All ranks call it at the same time and get the same answer; nothing when all replicas agree.
  std::optional<ReplicaDifference> compare() const;
  // The values that have replicas, and their bytes on this rank.
  size_t values() const { return values_.size(); }
  size_t bytes() const;

 private:
  // A value and the ranks that hold the same part of it, in groups of two and more.
  struct Compared {
    size_t index;
    std::vector<std::vector<int>> groups;
  };
  // Returns null where another stage holds it.
  const PersistentValue* held_here(const Compared& value) const;
  std::vector<int64_t> hashes() const;

  const TrainStep& step_;
  const Team& team_;
  std::vector<Compared> values_;
};

}  // namespace vitrail
