#include "backend/cpu/kernels.h"

#include <algorithm>

#include "backend/cpu/host/cores.h"
#include "backend/cpu/launch.h"
#include "backend/ref/kernels.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"

namespace vitrail {

namespace {

// The kernels of GEMM nodes, fastest first, from several folders of the CPU backend.
std::vector<OpKernels> gemm_kernels() {
  using namespace cpu;
  const std::vector<Kernel> linear = {packed_gemm(),  split_gemm(),  int8_gemm(),       bf16_gemm(),
                                      packing_gemm(), onednn_gemm(), bf16_tensor_gemm()};
  std::vector<Kernel> fused = linear;
  for (const Kernel& more :
       {chunked_sum(), bf16_tensor_weight_grad(), first_token_attention(), gelu_grad_gemm()})
    fused.push_back(more);
  return {
      fused_row(fused),
      row<LinearOp>(linear),
      row<PatchEmbedOp>({packed_gemm(), packing_gemm()}),
      row<LinearDxOp>({input_grad_gemm(), bf16_tensor_input_grad()}),
      row<LinearDwOp>({chunked_sum(), bf16_tensor_weight_grad()}),
      row<LoadParamOp>({pack_weight(), pack_lowp_weight()}),
  };
}

std::vector<OpKernels> own_kernels() {
  std::vector<OpKernels> all = gemm_kernels();
  for (const auto& room :
       {cpu::attention_kernels(), cpu::norm_kernels(), cpu::elementwise_kernels(), cpu::token_kernels(),
        cpu::reduce_kernels(), cpu::update_kernels(), cpu::convert_kernels()})
    all.insert(all.end(), room.begin(), room.end());
  return all;
}

// After an op's own kernels comes the one that widens 16-bit floats for them, and after all of these the
// reference kernel.
std::vector<OpKernels> with_reference(std::vector<OpKernels> list) {
  for (OpKernels& row : list)
    if (row.op != LoadParamOp::kKind) row.kernels.push_back(cpu::widened());
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
  std::string unsupported_reason(Arithmetic arithmetic, const DeviceInfo&) const override {
    if (arithmetic != Arithmetic::kFp8 && arithmetic != Arithmetic::kTF32) return {};
    return strf("%s is for NVIDIA GPUs: a processor has none", enum_name(arithmetic));
  }
  RewriteTraits fusing() const override { return {.first_attention = true, .residual_rows = true}; }
  std::optional<TuneKey> tune_key(const NodeView& node, const DeviceInfo& device) const override {
    return cpu::gemm_key(node, device);
  }
};

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
          .memory_bytes = cpu::physical_memory(),
          .threads = threads > 0 ? threads : cpu::usable_cores(),
          .isa = static_cast<int>(isa_by_name(isa, available_isa_levels(), "this processor"))};
}

DeviceInfo planned_cpu_device(int threads, std::string_view isa, size_t memory_bytes) {
  return {.name = "cpu",
          .memory_bytes = memory_bytes > 0 ? memory_bytes : cpu::physical_memory(),
          .threads = threads > 0 ? threads : cpu::usable_cores(),
          .isa = static_cast<int>(isa_by_name(isa, all_isa_levels(), "this build"))};
}

}  // namespace vitrail
