// Hands the collectives of a program to the ranks' communicators, and measures them. Work goes on while a
// started collective is on its way: it is moved on between nodes, since no other thread does.
#pragma once

#include <map>

#include "dist/mesh_communicators.h"
#include "graph/program.h"
#include "ops/collective.h"

namespace vitrail {

// What collectives took of a rank's time, summed over runs. Time within a poll counts as exposed: the rank's own
// cores move the bytes then.
struct CollectiveTimes {
  double exposed_s = 0;  // within collectives, waits and polls
  double waited_s = 0;   // the part of it that was waiting for other ranks or their data
  double flight_s = 0;   // from the start of each collective to its end
  double bytes = 0;      // sent, as CollectiveOp::bytes_sent counts
  int64_t count = 0;
};

class CollectiveRunner {
 public:
  // `ranks` may be null for programs without collectives.
  explicit CollectiveRunner(MeshCommunicators* ranks) : ranks_(ranks) {}

  // Runs a collective, or starts it: then `name` is what wait() is given.
  void run(const CollectiveOp& op, const TensorView& in, const TensorView& out, ValueId name);
  void wait(ValueId name);
  void poll();
  CollectiveTimes& times() { return times_; }

 private:
  struct Flight {
    std::unique_ptr<Pending> pending;
    double started_s = 0;
    bool done = false;
  };
  void land(Flight& flight);

  MeshCommunicators* ranks_;
  std::map<ValueId, Flight> flights_;
  CollectiveTimes times_;
};

}  // namespace vitrail
