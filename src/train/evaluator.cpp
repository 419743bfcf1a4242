#include "train/evaluator.h"

#include <algorithm>
#include <utility>

namespace vitrail {

Evaluator::Evaluator(const RunSetup& setup, const Team& team, TrainStep& step, const LoaderSettings& loader,
                     std::function<bool()> stop, SavePolicy& saves, RunJournal& journal, BadSamples& bad)
    : setup_(setup),
      team_(team),
      step_(step),
      loader_(make_eval_loader(*setup.data.val, loader)),
      stop_(std::move(stop)),
      saves_(saves),
      journal_(journal),
      bad_(bad) {}

bool Evaluator::due(int64_t step) const {
  const int64_t every = setup_.config.train.eval_every;
  return step % (every > 0 ? every : setup_.steps_per_epoch) == 0;
}

EvalResult Evaluator::evaluate_weights(bool average) {
  EvalOptions options{.loss = loss_kind(setup_.config.train.loss), .progress = {}, .stop = stop_};
  if (!team_.alone())
    options.gather = [this, cuts = setup_.eval_cuts()](const EvalRows& mine) {
      return rows_of_all(team_, cuts, mine);
    };
  EvalResult result = evaluate(
      *setup_.data.val, *loader_,
      [&](std::span<const float> images, int64_t count) { return step_.evaluate(images, count, average); },
      options);
  bad_.share();
  return result;
}

void Evaluator::run(Progress& progress) {
  const PhaseScope evaluating(step_.rank().pulse, RankPhase::kEvaluation);
  std::vector<EvalResult> results;
  results.push_back(evaluate_weights(false));
  if (averaged()) results.push_back(evaluate_weights(true));
  for (size_t i = 0; i < results.size(); ++i) {
    const bool counts = i + 1 == results.size();  // where there is an average, its result decides
    EvalStatus status =
        results[i].status(progress.step, setup_.epoch_of(progress.step - 1), i == 1 ? "ema" : "model");
    status.best = counts && judge(results[i], progress);
    journal_.eval(status);
  }
  last_ = std::move(results.back());
}

bool Evaluator::judge(const EvalResult& result, Progress& progress) {
  const double top1 = result.top1();
  const double seen = std::max(progress.best, progress.best_seen);
  progress.evals_since_best = top1 > seen ? 0 : progress.evals_since_best + 1;
  progress.best_seen = std::max(top1, seen);
  if (!(top1 > progress.best) || !saves_.write_best()) return false;
  progress.best = top1;
  progress.best_step = progress.step;
  return true;
}

EvalResult Evaluator::last() {
  return last_ ? *last_ : evaluate_weights(averaged());
}

}  // namespace vitrail
