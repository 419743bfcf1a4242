// The uploads of a program: values of the host's memory come to the device on a stream beside the programs'
// own, and events order the two. The host waits for nothing, and a device may record them with the program.
#pragma once

#include <map>
#include <memory>

#include "graph/program.h"
#include "runtime/rank_context.h"
#include "tensor/tensor.h"

namespace vitrail {

class Uploads {
 public:
  explicit Uploads(RankContext& rank) : rank_(rank) {}

  // An upload of the program, by node and by the name that wait() is given; both before the first run.
  void add(size_t node, ValueId name, const TensorView& host, const TensorView& target);
  bool has(ValueId name) const { return by_name_.contains(name); }

  // The copy begins when the programs' work so far, which may use the target, is done.
  void start(size_t node);
  // What the programs do from now on happens after it.
  void wait(ValueId name);

 private:
  struct Entry {
    TensorView host, target;
    std::unique_ptr<Event> ready, arrived;
  };

  RankContext& rank_;
  std::map<size_t, Entry> by_node_;
  std::map<ValueId, Entry*> by_name_;
};

}  // namespace vitrail
