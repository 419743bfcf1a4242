// The balance of a run's ranks: settles the shares of mesh.balance=auto, by what a checkpoint holds or by
// measuring, and shows how the ranks fare with theirs. Decides nothing during the run.
#pragma once

#include "train/balance.h"
#include "train/checkpoint_keeper.h"
#include "train/team.h"

namespace vitrail {

class RunBalance {
 public:
  // All arguments must outlive the object.
  RunBalance(RunSetup& setup, const Team& team) : setup_(setup), team_(team) {}

  // asked() returns whether shares other than even ones are asked for, to_find() whether to find them.
  bool asked() const { return !team_.alone() && !setup_.config.mesh.balance.empty(); }
  bool to_find() const;
  // Finds them and cuts the setup by them; all ranks call it. With `resumed`, those of the newest checkpoint
  // hold if they were found on the same ranks. Returns a sentence that says what was done.
  std::string settle(CheckpointKeeper& keeper, bool resumed, const Backend& backend, RankContext& rank);

  // Learns the memory of all ranks; all of them call it.
  void share_memory(size_t own_bytes);
  // A row a rank: its share, its speed, its memory, the step that was expected and that which is.
  std::string table(const std::vector<double>& seconds) const;

 private:
  std::vector<int64_t> from_checkpoint(CheckpointKeeper& keeper, const std::string& ranks) const;

  RunSetup& setup_;
  const Team& team_;
  std::vector<double> expected_s_;  // by place along dp; empty: nothing was measured
  std::vector<double> memory_;      // by rank
};

}  // namespace vitrail
