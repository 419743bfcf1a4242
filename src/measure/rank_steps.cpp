#include "measure/rank_steps.h"

#include "base/error.h"
#include "base/timing.h"
#include "train/team.h"

namespace vitrail {

namespace {

// Runs the updates of one rank and adds what it measured to the others' numbers.
void run_rank(const RankStepsRequest& request, RankContext& rank, RankStepsResult& result) {
  const Team team(rank.ranks);
  const Mesh mesh = rank.ranks ? rank.ranks->mesh() : Mesh{};
  const RunPlan plan(request.config, request.classes, *request.backend, rank.device,
                     {mesh.rank, mesh.world(), rank.sharing});
  SyntheticSteps steps(plan, rank);
  for (int64_t i = 0; i < request.warmup; ++i) steps.run();
  steps.take_collective_times();
  team.wait();
  std::vector<double> seconds;
  for (int64_t i = 0; i < request.updates; ++i) {
    if (team.leads() && request.stop && request.stop())
      throw Error(ErrorKind::kStopped, "stopped during a benchmark");
    const auto start = Clock::now();
    steps.run();
    seconds.push_back(seconds_since(start));
  }
  const CollectiveTimes times = steps.take_collective_times();
  double total = 0;
  for (const double second : seconds) total += second;
  double numbers[] = {total, times.exposed_s, times.waited_s, times.bytes};
  team.sum(numbers);
  if (!team.leads()) return;
  result.mesh = to_string(mesh);
  result.batch = plan.setup().config.train.batch;
  result.seconds = spread_of(seconds);
  result.exposed_share = numbers[1] / numbers[0];
  result.waited_share = numbers[2] / numbers[0];
  result.sent_bytes = numbers[3] / static_cast<double>(mesh.world() * request.updates);
}

}  // namespace

RankStepsResult time_rank_steps(World world, const RankStepsRequest& request) {
  RankStepsResult result{.ranks = world.size, .transport = world.transport};
  const MeshConfig mesh = resolved(request.config.mesh, world.size);
  run_ranks({.worlds = std::move(world.ranks),
             .mesh = mesh,
             .device = request.device,
             .seed = static_cast<uint64_t>(request.config.train.seed),
             .sharing = world.local_size,
             .heartbeat = request.heartbeat},
            [&](RankContext& rank) { run_rank(request, rank, result); });
  return result;
}

}  // namespace vitrail
