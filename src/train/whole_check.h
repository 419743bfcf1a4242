// The check behind train --check whole: one micro-batch of a sharded run, node by node as the program was
// cut, compared on the first rank with the same nodes of the program that was not. Each whole node gets what
// the ranks' inputs of it make together, so a difference belongs to that node, or to what moved its input
// there. Knows nothing of runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "runtime/check/check_node.h"
#include "train/mesh_config.h"
#include "train/recombine.h"
#include "train/train_step.h"

namespace vitrail {

// "--check whole: 812 nodes of the sharded step agree with the whole one".
std::string checked_text(size_t nodes);

// Throws Error(kUsage) where the check cannot compare a run: on one rank alone, with a pipeline or an
// offload.
void require_whole_check(const StepPlan& plan, const MeshConfig& mesh, bool alone);

class WholeCheck {
 public:
  // Tests set it: it is called on every rank with what a node has just written.
  using Disturb = std::function<void(const std::string& node, const TensorView& out)>;

  // All ranks make one; it holds a second copy of the weights, whole where ranks have pieces (ZeRO 3). `step`
  // must outlive it.
  explicit WholeCheck(const TrainStep& step, Disturb disturb = {});

  // Runs the micro-batch with the step's present weights on all ranks; changes nothing of the step. Throws
  // Error(kCheck) on the first rank at the first node that differs. Returns the number of nodes compared.
  size_t run(const MicroBatch& batch);

 private:
  void take_weights(const TrainStep& step);
  void gather_pieces(const PersistentStore& store, const PersistentValue& held,
                     std::vector<std::byte>& bytes);
  void fill_inputs(const MicroBatch& batch);
  void before(size_t node);
  void after(size_t node);
  void take_input(size_t node, ValueId cut, ValueId whole);
  void place_rows(Recombined& recipes, const Layout& layout) const;
  void compare(size_t node, const Known& wanted, ValueId cut, ValueId whole);
  void judge_moved(size_t node, ValueId cut, ValueId whole, const Recombined& found);
  void judge_copies(size_t node, ValueId whole, const Recombined& found) const;
  const Node& whole_node(size_t node) const;
  Layout layout_of(ValueId cut) const;
  static TensorView input_view(Recombined& value, bool as_it_is);
  [[noreturn]] void fail(size_t node, const std::string& what) const;

  RankContext& rank_;
  const Distribution& how_;
  ImageForm images_;
  Program whole_;
  Distributed cut_;
  ExecutionPlan plan_;
  PersistentStore store_;
  Executor executor_;
  Recombiner recombiner_;
  RankContext host_;  // where whole nodes are computed
  Disturb disturb_;
  std::vector<ValueId> homes_;  // by whole value: the cut value that was compared; -1: none yet
  std::set<ValueId> moved_;     // cut values that were compared after they were moved
  // The first rank keeps, by whole value, the forms in which nodes read it, by cut value. A sum of low
  // precision is rounded on its way.
  std::map<ValueId, std::map<ValueId, Recombined>> known_;
  std::vector<int> uses_;           // left, by whole value
  std::optional<NodeCheck> check_;  // of the node that runs
  size_t compared_ = 0;
};

}  // namespace vitrail
