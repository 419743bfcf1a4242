#include "measure/fit_options.h"

#include <algorithm>

#include "backend/registry.h"
#include "base/error.h"
#include "plan/largest_batch.h"
#include "plan/node_times.h"
#include "train/offload_time.h"
#include "train/run_plan.h"

namespace vitrail {

namespace {

constexpr int64_t kMostWanted = 1 << 24;

// Returns whether a way takes no more measures against a lack of memory than another, in the same arithmetic.
bool spares_less(const TrainConfig& a, const TrainConfig& b) {
  return a.train.dtype == b.train.dtype && a.mesh.tp <= b.mesh.tp && a.mesh.sp <= b.mesh.sp &&
         a.mesh.zero <= b.mesh.zero && a.train.recompute <= b.train.recompute &&
         a.mesh.offload <= b.mesh.offload;
}

class Search {
 public:
  explicit Search(const FitRequest& request)
      : q_(request),
        backend_(find_backend(q_.target.device.backend)),
        nodes_(q_.cluster.cluster.empty() ? 1 : q_.cluster.nodes),
        devices_(q_.cluster.cluster.empty() ? ranks_asked() : q_.cluster.devices) {
    found_.device = q_.target.file->name;
    found_.available_bytes = q_.target.available_bytes;
    found_.batch = q_.batch;
    found_.ranks = nodes_ * devices_;
    found_.network = !q_.cluster.cluster.empty();
  }

  FitOptions run() {
    for (const ComputeType dtype : types())
      for (const MeshConfig& mesh : meshes())
        for (const Offload offload : offloads())
          for (const Recompute level : levels()) {
            TrainConfig config = q_.config;
            config.mesh = mesh;
            config.mesh.offload = offload;
            // What one rank has in pieces is whole: ZeRO 3 costs it nothing.
            if (offload == Offload::kParameters && found_.ranks == 1) config.mesh.zero = 3;
            config.train.dtype = dtype;
            config.train.recompute = level;
            config.train.eval_batch = 0;
            draw(config);
          }
    if (found_.rows.empty() && !found_.least) throw Error(*refused_);
    if (!found_.rows.empty()) found_.least.reset();
    std::stable_sort(found_.rows.begin(), found_.rows.end(),
                     [](const FitOption& a, const FitOption& b) { return a.update_s < b.update_s; });
    return std::move(found_);
  }

 private:
  int64_t ranks_asked() const {
    const MeshConfig& mesh = q_.config.mesh;
    return std::max<int64_t>(mesh.dp, 1) * mesh.tp * mesh.sp * mesh.pp;
  }

  // The types that the device's file has a rate of, and the config's own.
  std::vector<ComputeType> types() const {
    const ComputeType own = q_.config.train.dtype;
    if (q_.given("train.dtype")) return {own};
    const Roofline known = q_.target.file->roofline(q_.target.device.threads);
    std::vector<ComputeType> types;
    for (const ComputeType type :
         {ComputeType::kF32, ComputeType::kTF32, ComputeType::kBF16, ComputeType::kF16, ComputeType::kFp8})
      if (type == own || known.flops.contains(enum_name(type))) types.push_back(type);
    return types;
  }

  std::vector<Recompute> levels() const {
    if (q_.given("train.recompute")) return {q_.config.train.recompute};
    return {Recompute::kNone, Recompute::kNorms, Recompute::kCheap, Recompute::kMlp, Recompute::kBlock};
  }

  std::vector<Offload> offloads() const {
    if (q_.target.device.shares_host_memory || q_.given("mesh.offload")) return {q_.config.mesh.offload};
    return {Offload::kNone, Offload::kOptimizer, Offload::kParameters};
  }

  std::vector<MeshConfig> meshes() {
    MeshConfig usual = q_.config.mesh;
    usual.dp = usual.tp = usual.sp = usual.pp = 1;
    usual.balance.clear();
    if (nodes_ * devices_ == 1) return {usual};
    TrainConfig one = q_.config;
    one.mesh = MeshConfig();
    one.train.batch = one.train.accumulation = 0;
    one.train.micro_batch = one.augment.mixes() ? one.augment.mix_group : 1;
    const RunPlan alone(one, q_.classes, backend_, q_.target.device, RankPlace{});
    auto meshes = sensible_meshes(usual, alone.setup().step.model, nodes_, devices_, false);
    if (q_.given("mesh.zero"))
      std::erase_if(meshes, [&](const MeshConfig& mesh) { return mesh.zero != usual.zero; });
    return meshes;
  }

  // The rank whose part is the largest.
  RunPlan planned(const TrainConfig& config) {
    ++found_.plans;
    const int world = static_cast<int>(found_.ranks);
    return {config, q_.classes, backend_, q_.target.device,
            RankPlace{world - 1, world, static_cast<int>(devices_)}};
  }

  // Finds the largest micro-batch with which a way fits, and keeps it.
  void draw(TrainConfig config) {
    const bool needless = std::any_of(found_.rows.begin(), found_.rows.end(), [&](const FitOption& row) {
      return row.config.train.accumulation == 1 && spares_less(row.config, config);
    });
    if (needless) return;
    try {
      VT_REQUIRE(q_.batch % config.mesh.dp == 0, ErrorKind::kConfig,
                 "a batch of %lld does not divide among %lld ranks with other images each",
                 static_cast<long long>(q_.batch), static_cast<long long>(config.mesh.dp));
      const int64_t share = q_.batch / config.mesh.dp;
      const AugmentConfig& augment = config.augment;
      const std::vector<int64_t> sizes = micro_batches(share, augment.mixes() ? augment.mix_group : 1);
      VT_REQUIRE(!sizes.empty(), ErrorKind::kConfig, "%lld images a rank are no whole groups of %lld",
                 static_cast<long long>(share), static_cast<long long>(augment.mix_group));
      largest_fitting(sizes, [&](int64_t size) {
        config.train.batch = q_.batch;
        config.train.micro_batch = size;
        config.train.accumulation = share / size;
        return try_at(config);
      });
      if (best_) found_.rows.push_back(timed(std::move(*best_)));
    } catch (const Error& error) {
      const bool lacks = error.kind() == ErrorKind::kConfig || error.kind() == ErrorKind::kUsage ||
                         error.kind() == ErrorKind::kDevice;
      if (!lacks) throw;
      if (!refused_) refused_ = error;
    }
    best_.reset();
  }

  // Plans a way; keeps it as the best of its draw where it fits, and as the least of all where it does not.
  bool try_at(const TrainConfig& config) {
    RunPlan plan = planned(config);  // may throw
    FitOption option{config, plan.peak_bytes(), sum_of(plan.host_rows())};
    Way way{std::move(option), std::move(plan)};
    if (way.option.peak_bytes <= found_.available_bytes) {
      best_.emplace(std::move(way));
      return true;
    }
    if (!found_.least || way.option.peak_bytes < found_.least->peak_bytes) found_.least = way.option;
    return false;
  }

  struct Way {
    FitOption option;
    RunPlan plan;
  };

  FitOption timed(Way way) {
    const DeviceFile& file = *q_.target.file;
    const StepPlan& step = way.plan.step();
    if (found_.network) {
      const ClusterRun run{way.option.config, q_.classes, q_.target, false};
      const ClusterRow row = plan_cluster(q_.cluster, q_.networks, run).rows.at(0);
      way.option.update_s = row.step_s;
      way.option.peak_bytes = std::max(way.option.peak_bytes, row.peak_bytes);
    } else {
      const double device_s = way.plan.update_seconds(file);
      way.option.update_s = device_s + host_seconds(step, way.option.config.train.accumulation, device_s);
    }
    found_.basis = basis_text(file, gemm_type(step.micro.program));
    return std::move(way.option);
  }

  const FitRequest& q_;
  const Backend& backend_;
  int64_t nodes_, devices_;
  FitOptions found_;
  std::optional<Error> refused_;  // the first reason why a way cannot be planned
  std::optional<Way> best_;       // of the way that is drawn
};
}  // namespace

FitOptions find_fit_options(const FitRequest& request) {
  if (!request.target.file)
    throw Error(ErrorKind::kConfig, "--wanted-batch ranks by time and needs the speed of the device",
                "--target t4, or a file that bench calibrate wrote");
  if (request.batch < 1 || request.batch > kMostWanted)
    throw Error(ErrorKind::kConfig,
                strf("--wanted-batch is %lld; expected 1 to %lld", static_cast<long long>(request.batch),
                     static_cast<long long>(kMostWanted)),
                "--wanted-batch 512");
  return Search(request).run();
}

}  // namespace vitrail
