#include "train/evaluator.h"

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
    status.best = counts && results[i].top1() > progress.best;
    if (counts) judge(results[i], status.best, progress);
    journal_.eval(status);
  }
  last_ = std::move(results.back());
}

void Evaluator::judge(const EvalResult& result, bool better, Progress& progress) {
  progress.evals_since_best = better ? 0 : progress.evals_since_best + 1;
  if (!better || !saves_.write_best()) return;
  progress.best = result.top1();
  progress.best_step = progress.step;
}

EvalResult Evaluator::last() {
  return last_ ? *last_ : evaluate_weights(averaged());
}

}  // namespace vitrail
