// A planned step as what a simulation needs of it: for each program, in order, the seconds that a node
// computes, the collective that it begins, or the one that it waits for. Knows no network.
#pragma once

#include <string>
#include <vector>

#include "ops/collective.h"
#include "plan/kernel_choice.h"

namespace vitrail {

struct StepTask {
  enum class Kind : uint8_t { kCompute, kCollective, kWait };
  Kind kind = Kind::kCompute;
  double seconds = 0;  // of a node that computes
  std::string name;
  // A collective says what is exchanged by whom; `slot` names it for the wait.
  CollectiveKind exchange = CollectiveKind::kAllReduce;
  AxisSet axes = {};
  double bytes = 0;  // the whole, as collective_cost takes it
  bool started = false;
  int peer = 0, channel = 0;
  int slot = -1;
};
using TaskList = std::vector<StepTask>;

// `seconds` has one entry a node; each is multiplied by `factor`.
TaskList tasks_of(const Program& program, const std::vector<double>& seconds, double factor = 1);

// A step: programs that run one after another, each so many times.
struct StepTasks {
  struct Run {
    TaskList tasks;
    int64_t times = 1;
  };
  std::vector<Run> runs;

  double compute_s() const;
};

}  // namespace vitrail
