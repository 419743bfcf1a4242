// Runs the collectives of a program, and measures them. One runner for each way that values travel: by the
// ranks' own cores where the host reads the device's memory, staged through page-locked memory where it
// cannot, or by the devices themselves. Work goes on while a started collective is on its way.
#pragma once

#include <algorithm>
#include <array>
#include <map>

#include "graph/program.h"
#include "ops/collective.h"
#include "runtime/rank_context.h"

namespace vitrail {

// Holds what collectives took of a rank's time, summed over runs. Where the ranks' own cores move the bytes,
// time within a poll counts as exposed; where a device computes, exposed is how long its work stood still for
// them.
struct CollectiveTimes {
  struct Kind {
    int64_t count = 0;
    double bytes = 0;    // sent, as CollectiveOp::bytes_sent counts
    double seconds = 0;  // from the start of each to its end
  };
  double exposed_s = 0;                           // within collectives, waits and polls
  double flight_s = 0;                            // with at least one of them on its way
  std::array<Kind, kCollectiveKinds> kinds = {};  // by CollectiveKind

  // The part of the flight that work went on in; what is moved by the ranks' own cores cannot be hidden.
  double hidden_s() const { return std::max(0.0, flight_s - exposed_s); }
  double bytes() const;
  void add(const CollectiveTimes& other);
};

// A collective of a program with its memory.
struct PlacedCollective {
  const CollectiveOp* op = nullptr;
  TensorView in, out;  // the same where it changes its input
  ValueId name = -1;   // what wait() is given; several started ones never share it
};

class CollectiveRunner {
 public:
  virtual ~CollectiveRunner() = default;

  // Called for each collective of the program, by node, and then prepare(), before the first run. All ranks
  // do so in one order.
  virtual void add(size_t node, const PlacedCollective& placed) = 0;
  virtual void prepare() {}
  // Runs the collective of a node, or starts it: then its name is what wait() is given.
  virtual void run(size_t node) = 0;
  virtual void wait(ValueId name) = 0;
  virtual void poll() {}

  // Around every run of the program; in the first one nothing else may happen while devices meet.
  virtual void begin_run(bool /*first*/) {}
  virtual void end_run() {}
  // Returns whether a device can record such collectives with the program; else it records what lies between.
  virtual bool records() const { return false; }
  // The page-locked memory that it has allocated.
  virtual size_t host_bytes() const { return 0; }
  virtual CollectiveTimes& times() { return times_; }

 protected:
  CollectiveTimes::Kind& times_of(const PlacedCollective& placed) {
    return times_.kinds[static_cast<size_t>(placed.op->form().kind)];
  }
  CollectiveTimes times_;
};

// The runner for a rank's device and partners. A rank without partners runs programs without collectives.
std::unique_ptr<CollectiveRunner> collective_runner(RankContext& rank);

// The page-locked bytes of a program's collectives where they are staged, to compare with what is allocated.
size_t staged_bytes(const Program& program, const Mesh& mesh);

}  // namespace vitrail
