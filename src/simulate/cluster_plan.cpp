#include "simulate/cluster_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "backend/registry.h"
#include "base/error.h"
#include "base/file.h"
#include "plan/node_times.h"
#include "simulate/one_device.h"
#include "train/offload_time.h"

namespace vitrail {

namespace {

// Holds what is planned, with everything that it needs.
struct ClusterQuestion : ClusterRun {
  Network network;
  int64_t nodes = 1, devices = 1;  // devices of a node
  const Backend* backend = nullptr;
  double one_device_s = 0;
  bool spans = false;

  int64_t world() const { return nodes * devices; }
};

constexpr int64_t kMostMicroBatches = 256;  // tried to make a step fit

// Plans and simulates one mesh after another.
class Planner {
 public:
  explicit Planner(const ClusterQuestion& question)
      : q_(question),
        one_device_(q_, *q_.backend),
        tiers_(tiers_of(q_.network, q_.nodes, q_.devices)),
        slowest_(expected_slowest(q_.network, q_.world())) {}

  double slowest() const { return slowest_; }

  // The mesh as it is asked for, batches and all; throws where it cannot run.
  ClusterRow as_asked() {
    TrainConfig config = q_.config;
    config.mesh = resolved_mesh(config, static_cast<int>(q_.world()));
    return simulated(config);
  }

  // The mesh with as few micro-batches as fit; with the reason where it cannot run.
  ClusterRow one_of_all(const MeshConfig& mesh, int64_t batch) {
    ClusterRow row;
    row.mesh = mesh;
    const int64_t images = batch / mesh.dp;  // of an update, by place along dp
    if (batch % mesh.dp != 0) {
      row.refused = strf("%lld images an update do not divide by %lld", static_cast<long long>(batch),
                         static_cast<long long>(mesh.dp));
      return row;
    }
    const int64_t least = mesh.pp > 1 ? std::min(images, 4 * mesh.pp) : 1;
    for (int64_t micros = 1; micros <= std::min(images, kMostMicroBatches); micros *= 2) {
      if (micros < least || images % micros != 0) continue;
      try {
        row = simulated(config_of(mesh, batch, micros));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kConfig) throw;
        row.refused = error.message();
        return row;
      }
      if (row.fits) return row;
    }
    if (row.micro_batch == 0) row.refused = "no number of micro-batches divides the images of a rank";
    return row;
  }

  // The bytes of a checkpoint: what one device would hold of parameters and optimizer state.
  double checkpoint_bytes(const ClusterRow& row) {
    const auto bytes = one_device_.plan(row.micro_batch, row.accumulation).step().by_category();
    return static_cast<double>(bytes[static_cast<size_t>(Category::kParameters)] +
                               bytes[static_cast<size_t>(Category::kOptimizer)]);
  }

 private:
  TrainConfig config_of(const MeshConfig& mesh, int64_t batch, int64_t micros) const {
    TrainConfig config = q_.config;
    config.mesh = mesh;
    config.train.batch = batch;
    config.train.accumulation = micros;
    config.train.micro_batch = batch / mesh.dp / micros;
    config.train.eval_batch = 0;
    return config;
  }

  RunPlan planned(const TrainConfig& config, int rank, int world) const {
    return {config, q_.classes, *q_.backend, q_.target.device,
            RankPlace{rank, world, static_cast<int>(q_.devices)}};
  }

  // The ranks that stand for the others: every stage, every share of a micro-batch, and the last place along
  // tp and sp, whose part is the largest.
  std::vector<int> representatives(const MeshConfig& mesh, const std::vector<int64_t>& shares) const {
    std::vector<int64_t> places;
    std::set<int64_t> seen;
    for (int64_t place = mesh.dp - 1; place >= 0; --place)
      if (seen.insert(shares[static_cast<size_t>(place)]).second) places.push_back(place);
    std::vector<int> ranks;
    for (int64_t stage = 0; stage < mesh.pp; ++stage)
      for (const int64_t place : places)
        ranks.push_back(static_cast<int>(((stage * mesh.dp + place) * mesh.sp + mesh.sp) * mesh.tp - 1));
    return ranks;
  }

  StepTasks tasks(const RunPlan& plan, double factor) const {
    const StepPlan& step = plan.step();
    const int64_t micros = plan.setup().config.train.accumulation;
    const auto listed = [&](const ExecutionPlan& program) {
      return tasks_of(program.program, node_seconds(program, *q_.target.file), factor);
    };
    StepTasks result;
    if (step.pipelined) {
      result.runs.push_back({listed(step.micro), 1});
    } else {
      result.runs.push_back({listed(step.micro), micros - (step.last_micro ? 1 : 0)});
      if (step.last_micro) result.runs.push_back({listed(*step.last_micro), 1});
    }
    result.runs.push_back({listed(step.update), 1});
    if (step.offload && step.offload->gather) result.runs.push_back({listed(*step.offload->gather), 1});
    return result;
  }

  ClusterRow simulated(const TrainConfig& config) {
    const int world = static_cast<int>(q_.world()), last = world - 1;
    std::vector<RunPlan> plans;
    plans.push_back(planned(config, last, world));
    const RunConfig train = plans[0].setup().config.train;
    ClusterRow row;
    row.mesh = config.mesh;
    row.micro_batch = train.micro_batch;
    row.accumulation = train.accumulation;
    row.batch = train.batch;
    const double factor =
        q_.one_device_s > 0 ? q_.one_device_s / one_device_.seconds(row.micro_batch, row.accumulation) : 1;
    for (const int rank : representatives(config.mesh, plans[0].setup().shares()))
      if (rank != last) plans.push_back(planned(config, rank, world));
    std::vector<StepTasks> steps;
    for (const RunPlan& plan : plans) {
      row.peak_bytes = std::max(row.peak_bytes, plan.peak_bytes());
      row.span_ranks.push_back(plan.rank());
      steps.push_back(tasks(plan, factor));
    }
    std::vector<SimulatedRank> ranks;
    for (size_t i = 0; i < plans.size(); ++i)
      ranks.push_back({plans[i].setup().step.distribution.mesh, &steps[i]});
    take_times(ranks, row);
    for (const RunPlan& plan : plans)
      row.host_s = std::max(row.host_s, host_seconds(plan.step(), row.accumulation, row.step_s));
    row.step_s += row.host_s;
    row.fits = row.peak_bytes <= q_.target.available_bytes;
    row.images_s = static_cast<double>(train.batch) / row.step_s;
    row.efficiency = factor * share_seconds(row) / row.step_s;
    return row;
  }

  // Returns what efficiency is against: one number for all meshes of a batch, with the micro-batches that
  // fit; of the only mesh, with micro-batches as large as its own.
  double share_seconds(const ClusterRow& row) {
    if (q_.every_mesh && shared_micro_batch_ == 0)
      shared_micro_batch_ = one_device_.share_micro_batch(row.batch, q_.world());
    return one_device_.share_seconds(row.batch, q_.world(),
                                     q_.every_mesh ? shared_micro_batch_ : row.micro_batch);
  }

  // The step is simulated once with equal devices, and once by the pace of the slowest, whom everybody waits
  // for.
  void take_times(const std::vector<SimulatedRank>& ranks, ClusterRow& row) {
    SimulationOptions options{.slowest = 1, .collective_s = q_.network.collective_us * 1e-6};
    SimulatedStep even = simulate_step(ranks, tiers_, options);
    options.slowest = slowest_;
    options.spans = q_.spans;
    SimulatedStep paced = simulate_step(ranks, tiers_, options);
    const auto count = static_cast<double>(even.ranks.size());
    for (const SimulatedTimes& times : even.ranks) {
      row.compute_s += times.compute_s / count;
      row.exposed_s += times.exposed_s / count;
      row.bubble_s += times.waiting_s / count;
      row.hidden_s += times.hidden_s() / count;
    }
    row.step_s = paced.step_s;
    row.slowest_s = paced.step_s - even.step_s;
    row.exchanges = std::move(paced.exchanges);
    row.spans = std::move(paced.spans);
  }

  const ClusterQuestion& q_;
  OneDevice one_device_;
  std::vector<Tier> tiers_;
  double slowest_;
  int64_t shared_micro_batch_ = 0;
};

void sort_rows(std::vector<ClusterRow>& rows) {
  const auto order = [](const ClusterRow& row) { return row.runs() ? 0 : row.refused.empty() ? 1 : 2; };
  std::stable_sort(rows.begin(), rows.end(), [&](const ClusterRow& a, const ClusterRow& b) {
    return std::make_pair(order(a), a.step_s) < std::make_pair(order(b), b.step_s);
  });
}

// The images of an update that all meshes are compared with: train.batch, or a micro-batch for each device.
int64_t compared_batch(const ClusterQuestion& q) {
  const RunConfig& train = q.config.train;
  if (train.batch > 0) return train.batch;
  const int64_t each = train.micro_batch > 0 ? train.micro_batch : 64;
  return each * std::max<int64_t>(1, train.accumulation) * q.world();
}

ClusterQuestion question_of(const ClusterSettings& settings, const std::vector<std::filesystem::path>& places,
                            const ClusterRun& run) {
  require_speed(run.target.file.has_value());
  const auto require = [](const char* name, double value, double least, double most, const char* hint) {
    if (value >= least && value <= most) return;
    throw Error(ErrorKind::kConfig, strf("--%s is %.10g; expected %.10g to %.10g", name, value, least, most),
                hint);
  };
  constexpr char kSizes[] = "--nodes 4 --devices 8: nodes, and devices of each";
  require("nodes", static_cast<double>(settings.nodes), 1, 1 << 20, kSizes);
  require("devices", static_cast<double>(settings.devices), 1, 1024, kSizes);
  require("nodes times --devices", static_cast<double>(settings.nodes * settings.devices), 1, 1 << 22,
          kSizes);
  require("one-device-s", settings.one_device_s, 0, 1e6,
          "--one-device-s 0.25: seconds of a measured update; 0: as predicted for --target");
  ClusterQuestion question{run, read_network(find_network(settings.cluster, places)), settings.nodes,
                           settings.devices};
  question.backend = &find_backend(run.target.device.backend);
  question.one_device_s = settings.one_device_s;
  question.spans = !settings.trace.empty();
  return question;
}

void plan_every_mesh(const ClusterQuestion& q, Planner& planner, ClusterPlan& plan) {
  plan.batch = compared_batch(q);
  TrainConfig one = q.config;
  one.mesh = MeshConfig();
  const RunPlan alone(one, q.classes, *q.backend, q.target.device, RankPlace{});
  for (const MeshConfig& mesh : sensible_meshes(q.config.mesh, alone.setup().step.model, q.nodes, q.devices,
                                                q.target.device.shares_host_memory))
    plan.rows.push_back(planner.one_of_all(mesh, plan.batch));
  sort_rows(plan.rows);
}

}  // namespace

void require_speed(bool known) {
  if (known) return;
  throw Error(ErrorKind::kConfig, "--cluster needs the speed of its devices",
              "--target h200, or a file that bench calibrate wrote");
}

ClusterPlan plan_cluster(const ClusterSettings& settings, const std::vector<std::filesystem::path>& places,
                         const ClusterRun& run) {
  std::optional<AtomicFile> trace, points;  // opened first: a path that cannot be written fails at once
  if (!settings.trace.empty()) trace.emplace(settings.trace);
  if (!settings.points.empty()) points.emplace(settings.points);
  const ClusterQuestion q = question_of(settings, places, run);
  if (q.every_mesh && q.one_device_s > 0)  // each mesh has other micro-batches
    throw Error(ErrorKind::kUsage, "--one-device-s is of one micro-batch, and meshes differ in theirs",
                "--mesh dp=8, one mesh at a time");
  Planner planner(q);
  ClusterPlan plan;
  plan.network = q.network.name;
  plan.device = q.target.file->name;
  plan.nodes = q.nodes;
  plan.devices = q.devices;
  plan.available_bytes = q.target.available_bytes;
  plan.slowest = planner.slowest();
  plan.one_device_s = q.one_device_s;
  if (q.every_mesh) {
    plan_every_mesh(q, planner, plan);
  } else {
    plan.rows.push_back(planner.as_asked());
    plan.batch = plan.rows[0].batch;
  }
  const ClusterRow& best = plan.rows.at(0);
  if (q.network.mtbf_hours > 0 && best.refused.empty())
    plan.failures = {
        {q.network.mtbf_hours * 3600 / static_cast<double>(q.world()),
         planner.checkpoint_bytes(best) / (q.network.storage_gbps * 1e9 / 8), q.network.restart_s},
        60 * q.config.train.save_minutes};
  if (trace) {
    trace->write(trace_of(best).dump() + "\n");
    trace->commit();
  }
  if (points) {
    points->write(predicted_points(settings, places, run).dump(1) + "\n");
    points->commit();
  }
  return plan;
}

}  // namespace vitrail
