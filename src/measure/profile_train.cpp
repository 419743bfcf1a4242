// The profile of a training run's updates, on one rank or several.
#include <optional>

#include "base/error.h"
#include "io/cards/card_text.h"
#include "measure/profile_run.h"
#include "plan/devices.h"

namespace vitrail {

Profile profile_training(const RunPlan& plan, RankContext& rank, const TimingBudget& budget,
                         const TimingHooks& hooks) {
  const int64_t batch = plan.setup().config.train.batch;
  const Team team(rank.ranks);
  Profile profile{.what = strf("%s, an update of %lld images: %s",
                               architecture_text(plan.setup().model->card.config).c_str(),
                               static_cast<long long>(batch), training_text(plan).c_str()),
                  .device = device_text(plan.step().micro),
                  .backend = plan.device().backend,
                  .training = true,
                  .batch = batch};
  SyntheticSteps steps(plan, rank);
  const TimingBudget agreement = agreed_budget(budget, team, [&] { steps.run(); });
  profile.peaks = peaks_of(plan.step().micro);
  team.wait();
  const auto warm = [&] {
    steps.reset_times();
    if (hooks.warm) hooks.warm();
  };
  const std::vector<double> seconds = time_calls(agreement, [&] { steps.run(); }, {warm, hooks.measured});
  profile.seconds = spread_of(seconds);
  // A device that replays a recording times nodes in updates of their own.
  const int64_t timed =
      plan.device().records_graphs ? steps.time_nodes() : static_cast<int64_t>(seconds.size());
  std::vector<TimedProgram> programs;
  for (Executor* program : steps.programs()) programs.push_back({program->plan(), program->times(), timed});
  take_rows(programs, profile);
  gather_ranks(team, profile);
  return profile;
}

std::optional<Profile> profile_ranks(World world, const RankStepsRequest& request,
                                     const TimingBudget& budget) {
  std::optional<Profile> result;
  run_ranks(local_ranks(std::move(world), request), [&](RankContext& rank) {
    const Mesh place = rank.ranks ? rank.ranks->mesh() : Mesh{};
    const RunPlan plan(request.config, request.classes, find_backend(request.backend), rank.device,
                       {place.rank, place.world(), rank.sharing, rank.overlapping});
    Profile profile = profile_training(plan, rank, budget, {});
    if (place.rank != 0) return;
    profile.what += ", " + to_string(place);
    result = std::move(profile);
  });
  return result;
}

}  // namespace vitrail
