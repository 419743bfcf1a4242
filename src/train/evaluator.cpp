#include "train/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "telemetry/format.h"

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
  progress.owed_step = -1;  // the weights of an earlier result are gone
  const bool counts = result.count > 0 && std::isfinite(result.loss);
  if (!counts)
    journal_.event("no_result", strf("%s: the evaluation does not count for best/",
                                     result.count > 0 ? "its loss is not finite" : "no image could be read"));
  const double top1 = counts ? result.top1() : -1;
  const double seen = std::max(progress.best, progress.best_seen);
  progress.evals_since_best = top1 > seen ? 0 : progress.evals_since_best + 1;
  progress.best_seen = std::max(top1, seen);
  if (!(top1 > progress.best)) return false;
  const bool written = saves_.write_best();
  if (written) {
    note_best(progress, top1);
  } else {
    progress.owed = top1;
    progress.owed_step = progress.step;
  }
  return written;
}

void Evaluator::note_best(Progress& progress, double top1) {
  progress.best = top1;
  progress.best_step = progress.step;
  progress.owed_step = -1;
}

void Evaluator::write_owed(Progress& progress, int64_t least_good) {
  if (progress.owed_step != progress.step || !saves_.write_best(least_good)) return;
  note_best(progress, progress.owed);
  journal_.event("best_written",
                 strf("best/ was written after all: the result of step %lld, %s",
                      static_cast<long long>(progress.step), format_percent(progress.best).c_str()));
}

void Evaluator::settle(Progress& progress, bool finished) {
  write_owed(progress, finished ? 1 : kLeastGood);
  if (progress.best_seen <= progress.best) return;
  const std::string found = progress.best < 0 ? "there is no best/"
                                              : strf("best/ holds the result of step %lld, %s",
                                                     static_cast<long long>(progress.best_step),
                                                     format_percent(progress.best).c_str());
  journal_.event("old_best", found + ", but the best one, " + format_percent(progress.best_seen) +
                                 ", could not be written");
}

EvalResult Evaluator::last() {
  return last_ ? *last_ : evaluate_weights(averaged());
}

}  // namespace vitrail
