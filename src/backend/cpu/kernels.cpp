#include "backend/cpu/kernels.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/library_linear.h"
#include "backend/ref/kernels.h"
#include "ops/layernorm.h"

namespace vitrail {

namespace {

using cpu::declines_unless_f32;

Kernel packed_linear() {
  return {.name = "packed gemm",
          .declines = cpu::declines_linear,
          .prepare = unprepared(cpu::linear_scratch_bytes, cpu::run_linear),
          .packing = cpu::weight_packing};
}
Kernel int8_linear() {
  return {.name = "int8 gemm",
          .declines = cpu::declines_reduced<Arithmetic::kInt8>,
          .prepare = unprepared(cpu::reduced_scratch_bytes, cpu::run_reduced),
          .packing = cpu::reduced_packing<Arithmetic::kInt8>};
}
Kernel bf16_linear() {
  return {.name = "bf16 gemm",
          .declines = cpu::declines_reduced<Arithmetic::kBF16>,
          .prepare = unprepared(cpu::reduced_scratch_bytes, cpu::run_reduced),
          .packing = cpu::reduced_packing<Arithmetic::kBF16>};
}
Kernel split_linear() {
  return {.name = "gemm by bf16 parts",
          .declines = cpu::declines_reduced<Arithmetic::kExact>,
          .prepare = unprepared(cpu::reduced_scratch_bytes, cpu::run_reduced),
          .packing = cpu::reduced_packing<Arithmetic::kExact>,
          .on_request = true};
}
Kernel plain_linear() {
  return {.name = "gemm that packs",
          .declines = cpu::declines_plain_linear,
          .prepare = unprepared(cpu::plain_linear_scratch_bytes, cpu::run_plain_linear)};
}
Kernel onednn_linear() {
  return {.name = "onednn tiles",
          .declines = [](const NodeView& node,
                         const DeviceInfo& device) { return cpu::declines_library(node, device, onednn()); },
          .prepare = unprepared(cpu::library_scratch_bytes,
                                [](const KernelArgs& args) { cpu::run_library_linear(args, onednn()); })};
}
Kernel half_linear() {
  return {.name = "bf16 tiles",
          .declines = cpu::declines_half_linear,
          .prepare = unprepared(cpu::half_linear_scratch_bytes, cpu::run_half_linear),
          .rounding = [](const NodeView&) { return Rounding{.members = true}; }};
}
Kernel half_linear_dw() {
  return {.name = "bf16 tiles by chunks",
          .declines = cpu::declines_half_linear_dw,
          .prepare = unprepared(cpu::half_linear_dw_scratch_bytes, cpu::run_half_linear_dw)};
}
Kernel sum() {
  return {.name = "sums by chunks",
          .declines = cpu::declines_sum,
          .prepare = unprepared(cpu::sum_scratch_bytes, cpu::run_sum)};
}
Kernel in_f32() {
  return {.name = "in f32",
          .declines = cpu::declines_half,
          .prepare = unprepared(cpu::half_scratch_bytes, cpu::run_half)};
}

size_t no_scratch(const NodeView&, const DeviceInfo&) {
  return 0;
}

// Sums over rows are nodes of their own here.
std::string declines_row_sums(const NodeView& node, const DeviceInfo& device) {
  const auto* norm = dynamic_cast<const LayernormGradOp*>(&node.op);
  const bool sums = norm ? norm->row_sums() : node.outs.size() > 1;
  return sums ? "makes no sums over the rows it writes" : declines_unless_f32(node, device);
}

Kernel kernel(const char* name, RunKernel run, Declines declines = declines_unless_f32,
              ScratchBytes scratch = no_scratch) {
  return {.name = name, .declines = declines, .prepare = unprepared(scratch, run)};
}
Kernel rows_kernel(RunKernel run, ScratchBytes scratch = no_scratch) {
  return kernel("vector rows", run, declines_unless_f32, scratch);
}
Kernel copy_kernel(RunKernel run, Declines declines = declines_unless_f32) {
  return kernel("parallel copy", run, declines);
}
Kernel update_kernel(RunKernel run, ScratchBytes scratch = no_scratch) {
  return kernel("one pass", run, cpu::declines_update, scratch);
}

// Own kernels, fastest first per op: of the forward pass, of gradients, and of what writes persistent values.
std::vector<OpKernels> forward_kernels() {
  return {
      {"fused",
       {packed_linear(), split_linear(), int8_linear(), bf16_linear(), plain_linear(), onednn_linear(),
        half_linear(), sum(), half_linear_dw(),
        kernel("one query by the tokens", cpu::run_first_attention, cpu::declines_first_attention,
               cpu::first_attention_scratch_bytes),
        kernel("gemm with gelu slope", cpu::run_linear_dx, cpu::declines_gelu_dx,
               cpu::linear_dx_scratch_bytes)}},
      {"linear",
       {packed_linear(), split_linear(), int8_linear(), bf16_linear(), plain_linear(), onednn_linear(),
        half_linear()}},
      {"patch_embed", {packed_linear(), plain_linear()}},
      {"attention",
       {kernel("blocked online softmax", cpu::run_attention, declines_unless_f32,
               cpu::attention_scratch_bytes)}},
      {"attention_probs",
       {kernel("products and softmax rows", cpu::run_attention_probs, declines_unless_f32,
               cpu::attention_probs_scratch_bytes)}},
      {"layernorm", {rows_kernel(cpu::run_layernorm)}},
      {"qk_norm", {rows_kernel(cpu::run_qk_norm)}},
      {"softmax", {rows_kernel(cpu::run_softmax)}},
      {"gelu", {rows_kernel(cpu::run_gelu)}},
      {"bias", {rows_kernel(cpu::run_bias)}},
      {"scale", {rows_kernel(cpu::run_scale)}},
      {"add", {rows_kernel(cpu::run_add)}},
      {"multiply", {rows_kernel(cpu::run_multiply)}},
      {"scale_by", {kernel("vector rows", cpu::run_scale_by, cpu::declines_scale_by)}},
      {"dropout", {kernel("vector hashes", cpu::run_dropout, cpu::declines_dropout)}},
      {"cast", {copy_kernel(cpu::run_cast, cpu::declines_cast)}},
      {"concat_tokens", {copy_kernel(cpu::run_concat_tokens)}},
      {"select_token", {copy_kernel(cpu::run_select_token)}},
      {"drop_tokens", {copy_kernel(cpu::run_drop_tokens)}},
      {"mean_tokens", {rows_kernel(cpu::run_mean_tokens)}},
  };
}

std::vector<OpKernels> gradient_kernels() {
  return {
      {"linear_dx",
       {kernel("gemm that packs", cpu::run_linear_dx, declines_unless_f32, cpu::linear_dx_scratch_bytes),
        kernel("bf16 tiles", cpu::run_half_linear_dx, cpu::declines_half_linear_dx,
               cpu::half_linear_dx_scratch_bytes)}},
      {"linear_dw", {sum(), half_linear_dw()}},
      {"patch_embed_dw", {sum()}},
      {"attention_grad",
       {kernel("blocks of queries", cpu::run_attention_grad, cpu::declines_attention_grad,
               cpu::attention_grad_scratch_bytes)}},
      {"layernorm_grad",
       {kernel("vector rows", cpu::run_layernorm_grad, declines_row_sums,
               cpu::layernorm_grad_scratch_bytes)}},
      {"qk_norm_grad", {rows_kernel(cpu::run_qk_norm_grad, cpu::qk_norm_grad_scratch_bytes)}},
      {"gelu_grad", {kernel("vector rows", cpu::run_gelu_grad, declines_row_sums)}},
      {"tanh_grad", {rows_kernel(cpu::run_tanh_grad)}},
      {"sum_rows", {sum()}},
      {"scale_dw", {sum()}},
      {"sum_tokens", {sum()}},
      {"select_token_grad", {copy_kernel(cpu::run_select_token_grad)}},
      {"drop_tokens_grad", {copy_kernel(cpu::run_drop_tokens_grad)}},
      {"mean_tokens_grad", {rows_kernel(cpu::run_mean_tokens_grad)}},
  };
}

std::vector<OpKernels> update_kernels() {
  return {
      {"copy_into", {copy_kernel(cpu::run_copy_into, cpu::declines_copy_into)}},
      {"accumulate", {rows_kernel(cpu::run_accumulate)}},
      {"square_sum",
       {kernel("chunks in double", cpu::run_square_sum, cpu::declines_square_sum,
               cpu::square_sum_scratch_bytes)}},
      {"sgd_update", {update_kernel(cpu::run_sgd_update)}},
      {"adam_update", {update_kernel(cpu::run_adam_update)}},
      {"lion_update", {update_kernel(cpu::run_lion_update)}},
      {"lamb_update", {update_kernel(cpu::run_lamb_update, cpu::lamb_scratch_bytes)}},
      {"ema_update", {update_kernel(cpu::run_ema_update)}},
      {"load_param",
       {kernel("pack", cpu::run_pack, cpu::declines_pack),
        kernel("round and pack", cpu::run_reduced_pack, cpu::declines_reduced_pack)}},
  };
}

std::vector<OpKernels> own_kernels() {
  std::vector<OpKernels> all = forward_kernels();
  for (const auto& more : {gradient_kernels(), update_kernels()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Behind an op's own kernels stands the one that widens 16-bit floats for them, behind all the reference.
std::vector<OpKernels> with_reference(std::vector<OpKernels> list) {
  for (OpKernels& row : list)
    if (row.op != "load_param") row.kernels.push_back(in_f32());
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
    static const std::vector<OpKernels> list = with_reference(cpu::f32_kernels());
    return list;
  }
  std::string lacks(Arithmetic arithmetic, const DeviceInfo&) const override {
    if (arithmetic != Arithmetic::kFp8 && arithmetic != Arithmetic::kTF32) return {};
    return strf("%s is for NVIDIA cards: a processor has none", enum_name(arithmetic));
  }
  RewriteTraits fusing() const override { return {.first_attention = true}; }
  std::optional<TuneKey> tune_key(const NodeView& node, const DeviceInfo& device) const override {
    return cpu::product_key(node, device);
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

size_t physical_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

IsaLevel isa_by_name(std::string_view name, const std::vector<IsaLevel>& levels, const char* whose) {
  if (name.empty()) return best_isa();
  std::string known;
  for (IsaLevel level : levels) {
    if (name == to_string(level)) return level;
    known += std::string(known.empty() ? "" : ", ") + to_string(level);
  }
  throw Error(ErrorKind::kUsage, strf("%s has no instruction set '%s'", whose, std::string(name).c_str()),
              "one of " + known);
}

}  // namespace

const std::vector<OpKernels>& cpu::f32_kernels() {
  static const std::vector<OpKernels> list = own_kernels();
  return list;
}

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

DeviceInfo cpu_device(int threads, std::string_view isa) {
  return {.name = "cpu",
          .memory_bytes = physical_memory(),
          .threads = threads > 0 ? threads : usable_cores(),
          .isa = static_cast<int>(isa_by_name(isa, available_isa_levels(), "this processor"))};
}

DeviceInfo planned_cpu_device(int threads, std::string_view isa, size_t memory_bytes) {
  return {.name = "cpu",
          .memory_bytes = memory_bytes > 0 ? memory_bytes : physical_memory(),
          .threads = threads > 0 ? threads : usable_cores(),
          .isa = static_cast<int>(isa_by_name(isa, all_isa_levels(), "this build"))};
}

}  // namespace vitrail
