// The evaluations of a run: its validation data through the weights as they are, and through their average
// where there is one; and what a result means: a new best model, or one more without. Knows nothing of steps
// of training.
#pragma once

#include <functional>
#include <memory>

#include "train/evaluate.h"
#include "train/run_journal.h"
#include "train/save_policy.h"

namespace vitrail {

class Evaluator {
 public:
  // `stop` cuts an evaluation short with Error(kStopped).
  Evaluator(const RunSetup& setup, TrainStep& step, const LoaderSettings& loader, std::function<bool()> stop,
            SavePolicy& saves, RunJournal& journal);

  // By the config, which may ask for more than the last step's.
  bool due(int64_t step) const;
  // Evaluates all weights there are, tells the results and takes them into account. One that is cut short
  // leaves nothing behind.
  void run(Progress& progress);
  // The last result that counted; evaluates when there was none yet.
  EvalResult last();
  // The same when there was one.
  const std::optional<EvalResult>& known() const { return last_; }

 private:
  EvalResult evaluate_weights(bool average);
  void judge(const EvalResult& result, bool better, Progress& progress);
  bool averaged() const { return step_.plan().eval_average.has_value(); }

  const RunSetup& setup_;
  TrainStep& step_;
  std::unique_ptr<Loader> loader_;
  std::function<bool()> stop_;
  SavePolicy& saves_;
  RunJournal& journal_;
  std::optional<EvalResult> last_;
};

}  // namespace vitrail
