// Hands the collectives of a program to the ranks' communicators, and measures them. Work goes on while a
// started collective is on its way: it is moved on between nodes, since no other thread does. Where a device has
// memory of its own, values pass through the host's (staged).
#pragma once

#include <algorithm>
#include <array>
#include <map>

#include "graph/program.h"
#include "ops/collective.h"
#include "runtime/rank_context.h"

namespace vitrail {

// What collectives took of a rank's time, summed over runs. Time within a poll counts as exposed: the rank's own
// cores move the bytes then.
struct CollectiveTimes {
  struct Kind {
    int64_t count = 0;
    double bytes = 0;    // sent, as CollectiveOp::bytes_sent counts
    double seconds = 0;  // from the start of each to its end
  };
  double exposed_s = 0;            // within collectives, waits and polls
  double flight_s = 0;             // with at least one of them on its way
  std::array<Kind, 4> kinds = {};  // by CollectiveKind

  // The part of the flight that work went on in; what is moved by the ranks' own cores cannot be hidden.
  double hidden_s() const { return std::max(0.0, flight_s - exposed_s); }
  double bytes() const;
  void add(const CollectiveTimes& other);
};

class CollectiveRunner {
 public:
  // A rank without partners runs programs without collectives.
  explicit CollectiveRunner(RankContext& rank) : rank_(rank) {}

  // Runs a collective, or starts it: then `name` is what wait() is given.
  void run(const CollectiveOp& op, const TensorView& in, const TensorView& out, ValueId name);
  void wait(ValueId name);
  void poll();
  CollectiveTimes& times() { return times_; }

 private:
  struct Flight {
    std::unique_ptr<Pending> pending;
    CollectiveKind kind = CollectiveKind::kAllReduce;
    double started_s = 0;
    bool done = false;
    // Where values are staged: the host's memory, and where the result goes.
    Buffer in = {}, out = {};
    void* target = nullptr;
  };
  std::unique_ptr<Flight> start(Communicator& group, Collective collective);
  void land(Flight& flight);

  RankContext& rank_;
  std::map<ValueId, std::unique_ptr<Flight>> flights_;
  CollectiveTimes times_;
  int on_their_way_ = 0;
  double since_s_ = 0;  // something was on its way all the time
};

}  // namespace vitrail
