#include "measure/tuner_gpu.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/timing.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {

constexpr size_t kAlignment = 256, kMostSets = 64;
constexpr size_t kLeastLaunches = 16;  // in a recording, so that its start is negligible
constexpr double kClearly = 1.01;

size_t bytes_of(const PlannedGemm& gemm) {
  size_t bytes = 0;
  for (const auto* side : {&gemm.ins, &gemm.outs})
    for (const TensorDesc& desc : *side) bytes += round_up(desc.bytes(), kAlignment);
  return bytes;
}

// The operands of one launch.
struct OperandSet {
  Buffer memory;
  std::vector<TensorView> ins, outs;

  OperandSet(const PlannedGemm& gemm, Device& device)
      : memory(bytes_of(gemm), Category::kTransient, &device) {
    std::byte* at = memory.data();
    for (const auto& [side, views] : {std::pair{&gemm.ins, &ins}, {&gemm.outs, &outs}})
      for (const TensorDesc& desc : *side) {
        fill_for_timing(device, at, desc.dtype, desc.bytes() / size_of(desc.dtype));
        views->emplace_back(at, desc);
        at += round_up(desc.bytes(), kAlignment);
      }
  }
};

std::vector<OperandSet> operand_sets(const PlannedGemm& gemm, const DeviceInfo& info, Device& device) {
  const size_t wanted = 2 * info.l2_bytes / std::max<size_t>(bytes_of(gemm), 1) + 1;
  std::vector<OperandSet> sets;
  for (size_t i = 0; i < std::min(wanted, kMostSets); ++i) sets.emplace_back(gemm, device);
  return sets;
}

double flops_of(const TuneKey& key) {
  return 2 * static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k);
}

// Returns the kernel that runs without a table, then the others that a table may name: the variants, and the
// first kernel that is not one.
std::vector<const Kernel*> kernels_for(const NodeView& node, const ExecutionPlan& plan) {
  DeviceInfo device = plan.device;
  device.kernels = nullptr;
  const Kernel* usual = plan.backend->choose(node, device).kernel;
  if (!usual) return {};
  std::vector<const Kernel*> kernels = {usual};
  bool variants_only = false;
  for (const Kernel& kernel : *plan.backend->kernels_of(node)) {
    if (!kernel.declines(node, device).empty() || (variants_only && !kernel.only_by_table)) continue;
    variants_only |= !kernel.only_by_table;
    if (&kernel != usual) kernels.push_back(&kernel);
  }
  return kernels;
}

// A GEMM with the memory it is measured in.
class Bench {
 public:
  Bench(const PlannedGemm& gemm, const DeviceInfo& info, Device& device)
      : gemm_(gemm),
        device_(device),
        sets_(operand_sets(gemm, info, device)),
        scratch_(scratch_bytes(gemm, info), Category::kScratch, &device),
        context_{pool_, info, device.launch_handle()} {}

  size_t launches() const { return std::max(kLeastLaunches, sets_.size()); }

  // Returns whether the kernel runs: a library may list algorithms that it then refuses.
  bool runs(const Kernel& kernel) {
    try {
      launch(kernel, sets_[0]);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  std::unique_ptr<Recording> record(const Kernel& kernel) {
    launch(kernel, sets_[0]);  // loads the kernel, which is not possible while recording
    device_.finish();
    auto recording = vitrail::record(device_, [&] {
      for (size_t i = 0; i < launches(); ++i) launch(kernel, sets_[i % sets_.size()]);
    });
    VT_REQUIRE(recording, ErrorKind::kDevice, "%s cannot be recorded", kernel.name);
    return recording;
  }

  // Returns the seconds of one launch.
  double seconds(Recording& recording) {
    return timed_seconds(device_, [&] { recording.replay(); }) / static_cast<double>(launches());
  }

 private:
  static size_t scratch_bytes(const PlannedGemm& gemm, const DeviceInfo& info) {
    size_t bytes = 0;
    for (const Kernel* kernel : gemm.kernels)
      bytes = std::max(bytes, kernel->scratch_bytes({*gemm.op, gemm.ins, gemm.outs}, info));
    return bytes;
  }
  void launch(const Kernel& kernel, const OperandSet& set) {
    kernel.run({*gemm_.op, set.ins, set.outs, {scratch_.data(), scratch_.bytes()}, context_});
  }

  const PlannedGemm& gemm_;
  Device& device_;
  std::vector<OperandSet> sets_;
  Buffer scratch_;
  ThreadPool pool_{1};
  LaunchContext context_;
};

}  // namespace

std::vector<PlannedGemm> gemms_to_tune(const std::vector<const ExecutionPlan*>& programs) {
  std::vector<PlannedGemm> gemms;
  for (const ExecutionPlan* plan : programs)
    for (const Node& node : plan->program.nodes) {
      const std::vector<TensorDesc> ins = plan->program.descs(node.ins),
                                    outs = plan->program.descs(node.outs);
      const NodeView view{*node.op, ins, outs};
      const auto key = plan->backend->tune_key(view, plan->device);
      if (!key) continue;
      const auto known = std::find_if(gemms.begin(), gemms.end(),
                                      [&](const PlannedGemm& other) { return other.key == *key; });
      if (known != gemms.end()) {
        ++known->nodes;
        continue;
      }
      std::vector<const Kernel*> kernels = kernels_for(view, *plan);
      if (kernels.size() > 1) gemms.push_back({*key, node.op, ins, outs, std::move(kernels), 1});
    }
  return gemms;
}

std::vector<KernelSpeed> measure_kernels(const PlannedGemm& gemm, const DeviceInfo& info, Device& device,
                                         int64_t rounds) {
  Bench bench(gemm, info, device);
  std::vector<std::unique_ptr<Recording>> recordings;
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : gemm.kernels)
    if (kernel == gemm.kernels.front() || bench.runs(*kernel)) {
      recordings.push_back(bench.record(*kernel));
      kernels.push_back(kernel);
    }
  for (const auto& recording : recordings) bench.seconds(*recording);  // warms up
  std::vector<std::vector<double>> seconds(recordings.size());
  for (int64_t round = 0; round < rounds; ++round)
    for (size_t i = 0; i < recordings.size(); ++i) seconds[i].push_back(bench.seconds(*recordings[i]));
  std::vector<KernelSpeed> speeds;
  for (size_t i = 0; i < recordings.size(); ++i)
    speeds.push_back({kernels[i]->name, flops_of(gemm.key) / spread_of(seconds[i]).median / 1e9, false});
  return speeds;
}

const KernelSpeed& preferred(const std::vector<KernelSpeed>& speeds) {
  VT_CHECK(!speeds.empty(), "no kernel was measured");
  const auto fastest =
      std::max_element(speeds.begin(), speeds.end(),
                       [](const KernelSpeed& a, const KernelSpeed& b) { return a.gflops < b.gflops; });
  return fastest->gflops > kClearly * speeds.front().gflops ? *fastest : speeds.front();
}

TunedGemms tune_gemms(const std::vector<PlannedGemm>& gemms, const DeviceInfo& info, Device& device,
                      int64_t rounds, KernelTable table,
                      const std::function<void(const std::string&)>& advance) {
  TunedGemms tuned{.table = std::move(table)};
  Table shown({{"GEMM"},
               {"m x n x k"},
               {"nodes", Align::kRight},
               {"usual, TFLOP/s", Align::kRight},
               {"fastest", Align::kRight},
               {"kernel"}});
  for (const PlannedGemm& gemm : gemms) {
    const std::vector<KernelSpeed> speeds = measure_kernels(gemm, info, device, rounds);
    const KernelSpeed& best = preferred(speeds);
    const GemmSize size{gemm.key.m, gemm.key.n, gemm.key.k};
    tuned.table.set({gemm.key, {best.kernel}});
    shown.row({gemm.key.op, size_text(size), std::to_string(gemm.nodes),
               strf("%.1f", speeds.front().gflops / 1e3), strf("%.1f", best.gflops / 1e3), best.kernel});
    nlohmann::ordered_json row = row_json(size, speeds);
    row.update({{"op", gemm.key.op}, {"nodes", gemm.nodes}, {"kernel", best.kernel}});
    tuned.rows.push_back(row);
    advance(gemm.key.op + " " + size_text(size));
  }
  tuned.text = shown.text();
  return tuned;
}

}  // namespace vitrail
