// Runs an execution plan for one rank: allocates the plan's transient arena, or shares one with other plans,
// binds every node to its kernel and addresses once, then runs the list, timing each node. Where the device
// supports it, a whole run is captured as a graph and replayed, what devices exchange by themselves included;
// of a program that exchanges values otherwise, the pieces between its exchanges are.
// Holds no policy.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plan/kernel_choice.h"
#include "runtime/collectives.h"
#include "runtime/persistent_store.h"
#include "runtime/rank_context.h"
#include "runtime/recorded_pieces.h"
#include "runtime/uploads.h"

namespace vitrail {

class TurnOp;

struct NodeTime {
  double seconds = 0;  // summed over runs
  int64_t runs = 0;
};

class Executor {
 public:
  // `shared`, if given, must be at least as large as the plan's transient arena, and `staging` as its staged
  // inputs; programs that share them must not run at the same time.
  Executor(const ExecutionPlan& plan, const PersistentStore& store, RankContext& rank,
           const Buffer* shared = nullptr, const Buffer* staging = nullptr);

  // Inputs must be filled before every run: their bytes are reused while the program runs.
  TensorView input(std::string_view name) const;
  TensorView output(std::string_view name) const;  // valid until the next run
  // A device with graph capture replays its second run from then on as one launch; it times nodes only when
  // timing is enabled, and then runs them one by one. No lock is held over a run.
  void run();
  // Called as each turn of a pipeline's program begins (ops/turn.h), with the memory of the inputs it names.
  using OnTurn = std::function<void(const TurnOp& turn, std::span<const TensorView> inputs)>;
  void on_turn(OnTurn call) { on_turn_ = std::move(call); }
  // Runs each node and, from the same inputs, repeats it on the reference backend with plain parameters;
  // throws Error(kCheck) at the first node that differs by more than its tolerance.
  void run_checked(const PersistentStore& plain_store);
  // Runs node by node and calls the one before, the other after each, with its number; what it reads and
  // what it has written can be viewed then.
  using AtNode = std::function<void(size_t node)>;
  void run_each(const AtNode& before, const AtNode& after);
  TensorView view(ValueId id) const;

  const ExecutionPlan& plan() const { return plan_; }
  const std::vector<NodeTime>& times() const { return times_; }
  // The collectives of the runs so far.
  CollectiveTimes& collective_times() { return collectives_->times(); }
  void reset_times();
  void time_nodes(bool wanted) { timed_ = wanted || !rank_.hardware->records(); }
  size_t transient_bytes() const { return own_.bytes(); }
  size_t staging_bytes() const { return own_staging_.bytes(); }
  size_t page_locked_bytes() const { return collectives_->host_bytes(); }  // of collectives that are staged
  size_t recordings() const { return recorded_ ? recorded_->recordings() : 0; }
  bool keeps_inputs() const { return plan_.memory.staging_bytes > 0; }

 private:
  // One kernel call with its addresses.
  struct Step {
    const Prepared* kernel;  // of the plan
    const Op* op;
    std::vector<TensorView> ins, outs;
    std::span<std::byte> scratch;
    bool empty = false;  // it writes nothing, since its shard is empty
    uint64_t fixed = 0;  // KernelArgs::fixed
  };
  static bool is_empty(const Step& step);
  void run_beside(size_t index);
  void begin_turn(const Node& node);
  uint64_t fixed_inputs(size_t node) const;
  std::vector<Step> bind(size_t node) const;
  void bind_members(size_t node, std::vector<Step>& steps) const;
  void run_node(size_t node);
  void run_nodes();
  void run_timed();
  void run_or_replay();
  void try_to_record();
  bool record_together(RecordedPieces& pieces);

  const ExecutionPlan& plan_;
  const PersistentStore& store_;
  RankContext& rank_;
  Buffer own_, own_staging_;
  std::byte *arena_, *staging_;
  std::vector<std::vector<Step>> steps_;  // by node
  std::vector<const char*> names_;        // by node, for the rank's pulse; empty without one
  std::vector<NodeTime> times_;
  std::vector<std::unique_ptr<Timestamp>> stamps_;  // where nodes are timed: before each and after the last
  bool timed_;
  bool ran_ = false;
  bool exchanges_ = false;  // the program has collectives
  bool updates_ = false;    // the program changes persistent values
  int spoilt_ = 0;          // captures that another thread invalidated
  std::unique_ptr<RecordedPieces> recorded_;
  std::unique_ptr<CollectiveRunner> collectives_;
  Uploads uploads_;
  OnTurn on_turn_;
};

}  // namespace vitrail
