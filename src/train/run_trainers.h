// The trainers of the ranks that live in this process, from their start to the end of the run.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "train/trainer.h"
#include "train/world.h"

namespace vitrail {

// Runs a trainer on each of the ranks, with hooks of its own by its number in the run; they are asked for on
// the rank's thread. Returns what the first of these ranks ended with.
inline TrainOutcome run_trainers(LocalRanks ranks, const TrainConfig& config, const TrainPlace& place,
                                 const std::string& backend,
                                 const std::function<TrainHooks(int rank)>& hooks) {
  const Backend& kernels = find_backend(backend);
  const int first = ranks.worlds[0]->rank();
  TrainOutcome outcome;
  run_ranks(std::move(ranks), [&](RankContext& context) {
    const int rank = context.ranks ? context.ranks->mesh().rank : 0;
    Trainer trainer(config, place, kernels, context, hooks(rank));
    const TrainOutcome ended = trainer.run();
    if (rank == first) outcome = ended;
  });
  return outcome;
}

}  // namespace vitrail
