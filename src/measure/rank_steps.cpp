#include "measure/rank_steps.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/timing.h"
#include "telemetry/format.h"
#include "telemetry/table.h"
#include "train/step_times.h"
#include "train/team.h"

namespace vitrail {

namespace {

// Adds up the numbers of all ranks, which come rank by rank, update by update.
TimingStatus timing_of(StepTimes& times, const std::vector<double>& of_all, size_t updates) {
  const size_t ranks = of_all.size() / (updates * StepTimes::kNumbers);
  for (size_t update = 0; update < updates; ++update) {
    std::vector<double> numbers;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto first =
          of_all.begin() + static_cast<ptrdiff_t>((rank * updates + update) * StepTimes::kNumbers);
      numbers.insert(numbers.end(), first, first + StepTimes::kNumbers);
    }
    times.add(numbers);
  }
  return times.take(static_cast<int64_t>(updates));
}

// A rank's own work in each update, by rank.
std::vector<std::vector<double>> computes_by_rank(const std::vector<double>& of_all, size_t updates) {
  const std::vector<double> all = StepTimes::computes_of(of_all);
  std::vector<std::vector<double>> ranks;
  for (auto first = all.begin(); first != all.end(); first += static_cast<ptrdiff_t>(updates))
    ranks.emplace_back(first, first + static_cast<ptrdiff_t>(updates));
  return ranks;
}

double waited_s(const TimingStatus& timing) {
  double waited = 0;
  for (const RankTime& rank : timing.ranks) waited += rank.imbalance_s;
  return waited;
}

// Holds what one rank measured.
struct Measured {
  explicit Measured(int ranks) : clock(ranks) {}
  StepTimes clock;
  std::vector<double> seconds, split;  // of each update; what it was spent on, as StepTimes has it
  CollectiveTimes times;
};

Measured measured_updates(const RankStepsRequest& request, const Team& team, SyntheticSteps& steps) {
  Measured measured(team.size());
  measured.clock.start();
  for (int64_t i = 0; i < request.updates; ++i) {
    if (team.leads() && request.stop && request.stop())
      throw Error(ErrorKind::kStopped, "stopped during a benchmark");
    const auto start = Clock::now();
    steps.run();
    measured.seconds.push_back(seconds_since(start));
    const CollectiveTimes own = steps.take_collective_times();
    const StepTimes::Numbers numbers = measured.clock.end_update(own, 0);
    measured.split.insert(measured.split.end(), numbers.begin(), numbers.end());
    measured.times.add(own);
  }
  return measured;
}

// Runs the updates of one rank and adds what it measured to the others' numbers.
void run_rank(const RankStepsRequest& request, RankContext& rank, RankStepsResult& result) {
  const Team team(rank.ranks);
  const Mesh mesh = rank.ranks ? rank.ranks->mesh() : Mesh{};
  const RunPlan plan(request.config, request.classes, find_backend(request.backend), rank.device,
                     {mesh.rank, mesh.world(), rank.sharing, rank.overlapping});
  SyntheticSteps steps(plan, rank);
  for (int64_t i = 0; i < request.warmup; ++i) steps.run();
  steps.take_collective_times();
  team.wait();
  Measured own = measured_updates(request, team, steps);
  const CollectiveTimes& times = own.times;
  const std::vector<double>& seconds = own.seconds;
  double total = 0;
  for (const double second : seconds) total += second;
  double numbers[] = {total,          times.exposed_s,  times.bytes(),
                      times.flight_s, times.hidden_s(), steps.loss_share()};
  team.sum(numbers);
  const std::vector<double> of_all = team.gather(own.split);
  if (!team.leads()) return;
  result.timing = timing_of(own.clock, of_all, seconds.size());
  result.mesh = to_string(mesh);
  result.batch = plan.setup().config.train.batch;
  result.seconds = spread_of(seconds);
  result.each = seconds;
  result.computes = computes_by_rank(of_all, seconds.size());
  result.exposed_share = numbers[1] / numbers[0];
  result.waited_share = waited_s(result.timing) / numbers[0];
  result.sent_bytes = numbers[2] / static_cast<double>(mesh.world() * request.updates);
  result.flight_s = numbers[3] / static_cast<double>(mesh.world() * request.updates);
  result.hidden_share = numbers[3] > 0 ? numbers[4] / numbers[3] : 0;
  result.loss = numbers[5] / static_cast<double>(mesh.size(Axis::kTensor) * mesh.size(Axis::kSequence));
  result.steps = steps.steps();
  result.peak_bytes = plan.step().peak_bytes();
  const char* devices = rank.ranks ? rank.ranks->device_transport() : nullptr;
  if (!rank.hardware->shares_host_memory()) result.devices = devices ? devices : "staged";
}

}  // namespace

LocalRanks local_ranks(World world, const RankStepsRequest& request) {
  return {.worlds = std::move(world.ranks),
          .mesh = resolved_mesh(request.config, world.size),
          .device = request.device,
          .seed = static_cast<uint64_t>(request.config.train.seed),
          .sharing = world.local_size,
          .overlapping = world.overlapping,
          .heartbeat = request.heartbeat,
          .variables = request.variables};
}

RankStepsResult time_rank_steps(World world, const RankStepsRequest& request) {
  RankStepsResult result{.ranks = world.size, .transport = world.transport};
  LocalRanks ranks = local_ranks(std::move(world), request);
  ranks.on_note = [&](const std::string& text) { result.note = text; };
  run_ranks(std::move(ranks), [&](RankContext& rank) { run_rank(request, rank, result); });
  return result;
}

nlohmann::ordered_json to_json(const RankStepsResult& r) {
  nlohmann::ordered_json json = {
      {"ranks", r.ranks},
      {"transport", r.transport},
      {"mesh", r.mesh},
      {"batch", r.batch},
      {"update_s", {{"median", r.seconds.median}, {"min", r.seconds.min}, {"p90", r.seconds.p90}}},
      {"images_per_second", r.images_per_second()},
      {"devices", r.devices},
      {"loss", r.loss},
      {"exposed_share", r.exposed_share},
      {"flight_s", r.flight_s},
      {"hidden_share", r.hidden_share},
      {"waited_share", r.waited_share},
      {"sent_bytes", r.sent_bytes},
      {"memory_peak", r.peak_bytes},
      {"timing", to_json(r.timing)}};
  if (r.each.empty() || r.each.size() > kMostTold) return json;
  json["update_s"]["each"] = r.each;
  json["compute_s"] = r.computes;
  return json;
}

std::string to_text(const RankStepsResult& r) {
  return format_pairs(
      {{"ranks", strf("%d (%s%s), %s", r.ranks, r.transport.c_str(),
                      r.devices.empty() ? "" : (", " + r.devices).c_str(), r.mesh.c_str())},
       {"update", strf("%s of %s images, median of %zu", format_seconds(r.seconds.median).c_str(),
                       format_integer(r.batch).c_str(), r.seconds.count)},
       {"throughput", format_si(r.images_per_second()) + " img/s"},
       {"communication",
        strf("%.1f %% of the time within collectives, %.1f %% waiting; %s sent an update by a rank",
             100 * r.exposed_share, 100 * r.waited_share,
             format_bytes(static_cast<size_t>(r.sent_bytes)).c_str())},
       {"hidden", strf("%.1f %% of the %s that collectives took an update, within compute",
                       100 * r.hidden_share, format_seconds(r.flight_s).c_str())},
       {"loss", strf("%.6f after %lld steps", r.loss, static_cast<long long>(r.steps))}});
}

}  // namespace vitrail
