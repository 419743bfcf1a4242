// Decides what a run does about replicas that differ: it goes back to the last checkpoint before whose save
// they agreed, and says which rank and which value it was; a rank that differs again before the run has come
// past that step ends it. When to compare beside every mesh.verify_every updates is the loop's matter.
#pragma once

#include "train/replica_check.h"
#include "train/run_journal.h"
#include "train/save_policy.h"

namespace vitrail {

class ReplicaPolicy {
 public:
  // All ranks make one at the same time. All arguments must outlive it.
  ReplicaPolicy(TrainStep& step, const Team& team, int64_t every, CheckpointKeeper& keeper,
                RunJournal& journal);

  // Returns whether the number of updates asks for a comparison.
  bool due(int64_t step) const { return step % every_ == 0; }
  // Compares; returns whether ranks differed and the run went back, and `progress` with it. Throws
  // Error(kDevice), which names the rank, when there is nothing to go back to, or one of the same ranks
  // differs again before the run has come past that step. All ranks call it.
  bool handle(Progress& progress);
  // Compares what the run starts from; a difference ends it.
  void require_agreement(const Progress& progress);

  const ReplicaCheck& check() const { return check_; }

 private:
  std::string difference_text(const ReplicaDifference& found, int64_t step) const;
  [[noreturn]] void give_up(const ReplicaDifference& found, const std::string& text) const;

  TrainStep& step_;
  const Team& team_;
  int64_t every_;
  CheckpointKeeper& keeper_;
  RunJournal& journal_;
  ReplicaCheck check_;
  std::vector<std::string> hosts_;  // by rank
  // The ranks that differed after this step, until the run has come past it.
  std::vector<int> suspects_;
  int64_t differed_at_ = 0;
};

}  // namespace vitrail
