#include "train/run_evaluation.h"

#include <utility>

namespace vitrail {

RunEvaluation::RunEvaluation(const RunSetup& setup, TrainStep& step, const LoaderSettings& loader,
                             std::function<bool()> stop)
    : setup_(setup),
      step_(step),
      loader_(make_eval_loader(*setup.data.val, loader)),
      stop_(std::move(stop)) {}

EvalResult RunEvaluation::evaluate_weights(bool average) {
  const EvalOptions options{.loss = loss_kind(setup_.config.train.loss), .progress = {}, .stop = stop_};
  return evaluate(
      *setup_.data.val, *loader_,
      [&](std::span<const float> pictures, int64_t count) {
        return step_.evaluate(pictures, count, average);
      },
      options);
}

std::vector<EvalResult> RunEvaluation::all() {
  std::vector<EvalResult> results;
  results.push_back(evaluate_weights(false));
  if (averaged()) results.push_back(evaluate_weights(true));
  return results;
}

EvalResult RunEvaluation::counting() {
  return evaluate_weights(averaged());
}

}  // namespace vitrail
