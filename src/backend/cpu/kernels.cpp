#include "backend/cpu/kernels.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "backend/cpu/blas.h"
#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/launch.h"
#include "backend/ref/kernels.h"

namespace vitrail {

namespace {

using cpu::declines_unless_f32;

const Kernel kPackedLinear{.name = "packed gemm",
                           .declines = cpu::declines_linear,
                           .scratch_bytes = cpu::linear_scratch_bytes,
                           .run = cpu::run_linear,
                           .packing = cpu::weight_packing};
const Kernel kBlasLinear{.name = "openblas tiles",
                         .declines = cpu::declines_blas,
                         .scratch_bytes = cpu::blas_scratch_bytes,
                         .run = cpu::run_blas_linear};

size_t no_scratch(const NodeView&, const DeviceInfo&) {
  return 0;
}

Kernel rows_kernel(void (*run)(const KernelArgs&)) {
  return {.name = "vector rows", .declines = declines_unless_f32, .scratch_bytes = no_scratch, .run = run};
}

// Own kernels, fastest first per op; the reference kernel stands behind every list.
std::vector<OpKernels> own_kernels() {
  return {
      {"fused", {kPackedLinear}},
      {"linear", {kPackedLinear, kBlasLinear}},
      {"patch_embed", {kPackedLinear}},
      {"attention",
       {{.name = "blocked online softmax",
         .declines = declines_unless_f32,
         .scratch_bytes = cpu::attention_scratch_bytes,
         .run = cpu::run_attention}}},
      {"attention_probs",
       {{.name = "products and softmax rows",
         .declines = declines_unless_f32,
         .scratch_bytes = cpu::attention_probs_scratch_bytes,
         .run = cpu::run_attention_probs}}},
      {"layernorm", {rows_kernel(cpu::run_layernorm)}},
      {"qk_norm", {rows_kernel(cpu::run_qk_norm)}},
      {"softmax", {rows_kernel(cpu::run_softmax)}},
      {"gelu", {rows_kernel(cpu::run_gelu)}},
      {"bias", {rows_kernel(cpu::run_bias)}},
      {"scale", {rows_kernel(cpu::run_scale)}},
      {"add", {rows_kernel(cpu::run_add)}},
      {"mean_tokens", {rows_kernel(cpu::run_mean_tokens)}},
      {"load_param",
       {{.name = "pack", .declines = cpu::declines_pack, .scratch_bytes = no_scratch, .run = cpu::run_pack}}},
  };
}

std::vector<OpKernels> with_reference(std::vector<OpKernels> list) {
  for (const OpKernels& reference : ref_backend().kernels()) {
    const auto own =
        std::find_if(list.begin(), list.end(), [&](const OpKernels& row) { return row.op == reference.op; });
    if (own == list.end())
      list.push_back(reference);
    else
      own->kernels.insert(own->kernels.end(), reference.kernels.begin(), reference.kernels.end());
  }
  return list;
}

class CpuBackend : public Backend {
 public:
  const char* name() const override { return "cpu"; }
  const std::vector<OpKernels>& kernels() const override {
    static const std::vector<OpKernels> list = with_reference(own_kernels());
    return list;
  }
};

// Cores a container's CPU quota amounts to ("200000 100000" is two); a large number without one.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return 1 << 16;
  return static_cast<int>(std::ceil(quota / period));
}

int usable_cores() {
  cpu_set_t set;
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(cores, quota_cores()));
}

IsaLevel isa_by_name(std::string_view name) {
  if (name.empty()) return best_isa();
  std::string known;
  for (IsaLevel level : available_isa_levels()) {
    if (name == to_string(level)) return level;
    known += std::string(known.empty() ? "" : ", ") + to_string(level);
  }
  throw Error(ErrorKind::kUsage,
              strf("this processor has no instruction set '%s'", std::string(name).c_str()),
              "one of " + known);
}

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

DeviceInfo cpu_device(int threads, std::string_view isa) {
  const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return {.name = "cpu",
          .memory_bytes = pages * page,
          .threads = threads > 0 ? threads : usable_cores(),
          .isa = static_cast<int>(isa_by_name(isa))};
}

}  // namespace vitrail
