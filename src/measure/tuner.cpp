#include "measure/tuner.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "base/timing.h"
#include "base/values.h"
#include "tensor/buffer.h"

namespace vitrail {

namespace {
// An operand in memory of its own, filled with ones, since zeros and subnormal numbers may take another time.
struct Operand {
  TensorDesc desc;
  Buffer buffer;

  explicit Operand(const TensorDesc& d) : desc(d), buffer(d.bytes(), Category::kTransient) {
    std::fill_n(static_cast<float*>(view().data()), d.bytes() / sizeof(float), 1.0f);
  }
  TensorView view() const { return {buffer.data(), desc}; }
};

// One kernel with its own operands, ready to run.
class Candidate {
 public:
  Candidate(const LinearOp& op, const Kernel& kernel, std::vector<TensorDesc> ins, const TensorDesc& out,
            const DeviceInfo& device)
      : op_(op),
        kernel_(kernel),
        prepared_(kernel.prepare({op_, ins, {&out, 1}}, device)),
        out_(out),
        scratch_(prepared_.scratch_bytes, Category::kScratch) {
    packs_ = !ins[1].packing.empty();
    for (const TensorDesc& desc : ins) ins_.emplace_back(desc);
  }

  double run(const LaunchContext& context) {
    std::vector<TensorView> views;
    for (const Operand& operand : ins_) views.push_back(operand.view());
    const TensorView out = out_.view();
    const Clock::time_point start = Clock::now();
    prepared_.run({op_, views, {&out, 1}, {scratch_.data(), scratch_.bytes()}, context});
    return seconds_since(start);
  }
  void measure(const LaunchContext& context) { seconds_.push_back(run(context)); }

  KernelSpeed speed(double flops) const {
    return {kernel_.name, flops / spread_of(seconds_).min / 1e9, packs_};
  }

 private:
  LinearOp op_;
  const Kernel& kernel_;
  Prepared prepared_;
  std::vector<Operand> ins_;
  Operand out_;
  Buffer scratch_;
  std::vector<double> seconds_;
  bool packs_ = false;
};

// Makes a candidate with the weight in the kernel's storage order; null when the kernel declines the GEMM.
std::unique_ptr<Candidate> candidate(const LinearOp& op, const Kernel& kernel, const GemmSize& size,
                                     const DeviceInfo& device) {
  std::vector<TensorDesc> ins = {{DType::kF32, {{'N', size.m}, {'D', size.k}}},
                                 {DType::kF32, {{'F', size.n}, {'D', size.k}}}};
  const std::vector<TensorDesc> outs = op.infer(ins);
  if (kernel.packing) {
    const Packing packing = kernel.packing({op, ins, outs}, device);
    if (packing.input < 0) return nullptr;
    TensorDesc& weight = ins[packing.input];
    weight.packing = packing.name;
    weight.packed_rows = packing.rows;
    weight.packed_bytes = packing.bytes;
  }
  if (!kernel.declines({op, ins, outs}, device).empty()) return nullptr;
  return std::make_unique<Candidate>(op, kernel, ins, outs[0], device);
}
}  // namespace

std::vector<GemmSize> zoo_gemms() {
  std::vector<GemmSize> sizes;
  for (const int64_t width : {192, 384, 768, 1024})
    for (const int64_t images : {1, 8})
      for (const int64_t tokens : {50, 65, 197}) {
        const int64_t m = images * tokens;
        for (const auto& [n, k] :
             {std::pair{3 * width, width}, {width, width}, {4 * width, width}, {width, 4 * width}})
          sizes.push_back({m, n, k});
      }
  return sizes;
}

std::vector<KernelSpeed> ranked(std::vector<KernelSpeed> speeds) {
  constexpr double kClearly = 1.03;
  for (size_t i = 1; i < speeds.size(); ++i)
    for (size_t at = i; at > 0 && speeds[at].gflops > kClearly * speeds[at - 1].gflops; --at)
      std::swap(speeds[at], speeds[at - 1]);
  return speeds;
}

std::vector<KernelSpeed> measure_kernels(const GemmSize& size, const DeviceInfo& device, ThreadPool& pool,
                                         int64_t rounds, Arithmetic arithmetic) {
  const LinearOp op(arithmetic);
  const LaunchContext context{pool, device};
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const OpKernels& row : find_entry(device.backend).tables.of_sizes())
    if (row.op == LinearOp::kKind)
      for (const Kernel& kernel : row.kernels)
        if (auto one = candidate(op, kernel, size, device)) candidates.push_back(std::move(one));
  for (const auto& one : candidates) one->run(context);
  for (int64_t round = 0; round < rounds; ++round)
    for (const auto& one : candidates) one->measure(context);
  std::vector<KernelSpeed> speeds;
  speeds.reserve(candidates.size());
  const double flops =
      2 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  for (const auto& one : candidates) speeds.push_back(one->speed(flops));
  return ranked(std::move(speeds));
}

KernelTable::Row tuned_row(const GemmSize& size, const DeviceInfo& device,
                           const std::vector<KernelSpeed>& speeds) {
  KernelTable::Row row{{std::string(LinearOp::kKind), size.m, size.n, size.k, device.threads, device.isa},
                       {}};
  for (const KernelSpeed& speed : speeds) {
    row.kernels.push_back(speed.kernel);
    if (!speed.packs) break;
  }
  return row;
}

GemmSize parse_gemm(const std::string& text) {
  constexpr int64_t kMost = 1 << 20;
  std::vector<int64_t> sizes;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    const int64_t size = parse_integer(text.substr(at, end - at)).value_or(0);
    if (size >= 1 && size <= kMost) sizes.push_back(size);
    at = end + 1;
  }
  if (sizes.size() != 3 || std::count(text.begin(), text.end(), 'x') != 2)
    throw Error(ErrorKind::kUsage,
                strf("--gemm expects MxNxK, each from 1 to %lld, not %s", static_cast<long long>(kMost),
                     quoted(text).c_str()),
                "--gemm 197x2304x768: rows x outputs x inputs");
  return {sizes[0], sizes[1], sizes[2]};
}

std::string size_text(const GemmSize& s) {
  return strf("%lldx%lldx%lld", static_cast<long long>(s.m), static_cast<long long>(s.n),
              static_cast<long long>(s.k));
}

nlohmann::ordered_json row_json(const GemmSize& size, const std::vector<KernelSpeed>& speeds) {
  nlohmann::ordered_json row = {
      {"m", size.m}, {"n", size.n}, {"k", size.k}, {"gflops", nlohmann::ordered_json::object()}};
  for (const KernelSpeed& speed : speeds) row["gflops"][speed.kernel] = speed.gflops;
  return row;
}

std::vector<std::string> row_cells(const GemmSize& size, const std::vector<KernelSpeed>& speeds) {
  std::vector<std::string> cells = {size_text(size)};
  for (const KernelSpeed& speed : speeds)
    cells.push_back(strf("%s %.1f", speed.kernel.c_str(), speed.gflops));
  return cells;
}

}  // namespace vitrail
