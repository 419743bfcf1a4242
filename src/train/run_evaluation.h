// The evaluations of a run: its validation data through the weights as they are, and through their average
// where there is one. Used by the trainer, which decides when and what a result means.
#pragma once

#include <functional>
#include <memory>

#include "train/evaluate.h"
#include "train/run_setup.h"
#include "train/train_step.h"

namespace vitrail {

class RunEvaluation {
 public:
  // `stop` cuts an evaluation short with Error(kStopped).
  RunEvaluation(const RunSetup& setup, TrainStep& step, const LoaderSettings& loader,
                std::function<bool()> stop);

  // Of the weights, then of their average where there is one: the last one counts.
  std::vector<EvalResult> all();
  // The one that counts.
  EvalResult counting();

 private:
  EvalResult evaluate_weights(bool average);
  bool averaged() const { return step_.plan().eval_average.has_value(); }

  const RunSetup& setup_;
  TrainStep& step_;
  std::unique_ptr<Loader> loader_;
  std::function<bool()> stop_;
};

}  // namespace vitrail
