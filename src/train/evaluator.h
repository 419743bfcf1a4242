// The evaluations of a run: its validation data through the current weights, and through their moving average
// where there is one; and what a result means: a new best model, or one more evaluation without. Knows
// nothing of training steps.
#pragma once

#include <functional>
#include <memory>

#include "train/bad_samples.h"
#include "train/evaluate.h"
#include "train/run_journal.h"
#include "train/save_policy.h"

namespace vitrail {

class Evaluator {
 public:
  // `stop` interrupts an evaluation with Error(kStopped).
  Evaluator(const RunSetup& setup, const Team& team, TrainStep& step, const LoaderSettings& loader,
            std::function<bool()> stop, SavePolicy& saves, RunJournal& journal, BadSamples& bad);

  // Returns whether the config requires an evaluation at this step.
  bool due(int64_t step) const;
  // Evaluates the current and the averaged weights, reports the results and updates `progress`. An
  // interrupted evaluation leaves nothing behind.
  void run(Progress& progress);
  // Tries again to write best/ for weights that are still at hand, where that failed; the oldest checkpoints
  // make room, down to `least_good` good ones.
  void write_owed(Progress& progress, int64_t least_good = kLeastGood);
  // The same at the end of a process, and says where best/ stays behind the best result. A run that has
  // `finished` gives all checkpoints but the last for it.
  void settle(Progress& progress, bool finished);
  // Returns the last result that counted; evaluates when there was none yet.
  EvalResult last();
  // Returns the last result, if there was one.
  const std::optional<EvalResult>& known() const { return last_; }

 private:
  EvalResult evaluate_weights(bool average);
  // Writes best/ where the result is better than what it holds; returns whether it holds it now. Patience
  // goes by results, whether or not they could be written. A loss that is NaN or Inf is no result.
  bool judge(const EvalResult& result, Progress& progress);
  static void note_best(Progress& progress, double top1);
  bool averaged() const { return step_.plan().averages(); }

  const RunSetup& setup_;
  const Team& team_;
  TrainStep& step_;
  std::unique_ptr<Loader> loader_;
  std::function<bool()> stop_;
  SavePolicy& saves_;
  RunJournal& journal_;
  BadSamples& bad_;
  std::optional<EvalResult> last_;
};

}  // namespace vitrail
