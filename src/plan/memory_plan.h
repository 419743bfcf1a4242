// Decides where every value of a Program lies: the persistent arenas (parameters and what training keeps
// beside them) and one transient arena (inputs, activations, outputs, scratch), from lifetimes. The executor
// allocates exactly these bytes, so what is predicted is what is used.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "graph/program.h"
#include "plan/persistent_layout.h"
#include "tensor/buffer.h"

namespace vitrail {

struct Placement {
  bool persistent = false;
  bool staged = false;  // an input outside the transient arena
  size_t offset = 0, bytes = 0;
  int first = 0, last = 0;  // nodes between which a transient must keep its bytes, inclusive
  Category category = Category::kTransient;
};

struct MemoryPlan {
  std::vector<Placement> values;   // by ValueId; a value that no node reads or writes has no bytes
  std::vector<Placement> scratch;  // by node
  std::shared_ptr<PersistentLayout> persistent;
  size_t persistent_bytes = 0;
  size_t staging_bytes = 0;                    // inputs that keep their place from run to run
  size_t transient_bytes = 0;                  // the arena: peak over time, fragmentation included
  size_t lower_bound_bytes = 0;                // most bytes alive at once; no layout can need fewer
  std::array<size_t, kCategoryCount> alive{};  // of the transient arena, at the moment of the lower bound
  std::array<size_t, kCategoryCount> by_category{};  // the same, plus the persistent arenas

  size_t peak_bytes() const { return persistent_bytes + staging_bytes + transient_bytes; }
};

// Lays out all values; `scratch_bytes` holds one size per node. Outputs keep their bytes to the end. An op
// that allows it overwrites an input that no later node reads. Persistent values go into `layout`, a new one
// when it is null; those that have no place yet on the host where `host`. With `stage_inputs`, inputs lie
// apart and may be filled once for many runs.
MemoryPlan plan_memory(const Program& program, const std::vector<size_t>& scratch_bytes,
                       std::shared_ptr<PersistentLayout> layout = nullptr, bool stage_inputs = false,
                       bool host = false);

}  // namespace vitrail
