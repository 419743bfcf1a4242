#include "backend/cuda/fp8_gemm.h"

namespace vitrail::cuda {

namespace {

// cuBLASLt takes one scale per row on this compute capability only.
constexpr int kCompute = 90;

std::string unsupported_sizes(const GemmPlan& plan) {
  for (int64_t row : {plan.k, plan.n})
    if (row % 16 != 0)
      return strf("rows of %lld fp8 elements are not whole 16 bytes", static_cast<long long>(row));
  if (plan.k > kLongestFp8Row) return strf("sums %lld elements", static_cast<long long>(plan.k));
  return {};
}

std::vector<TensorDesc> plain(DescSpan ins) {
  std::vector<TensorDesc> list(ins.begin(), ins.end());
  for (TensorDesc& desc : list) desc = {desc.dtype, desc.shape};
  return list;
}

}  // namespace

std::string fp8_unsupported_on_gpu(const DeviceInfo& device) {
  if (device.compute == kCompute) return {};
  return strf("fp8 needs an NVIDIA GPU of compute capability exactly 9.0; %s has %d.%d", device.name.c_str(),
              device.compute / 10, device.compute % 10);
}

std::string fp8_unsupported(const NodeView& node, const DeviceInfo& device) {
  const std::vector<TensorDesc> ins = plain(node.ins);
  if (std::string reason = declines_unless_plain({node.op, ins, node.outs}, device); !reason.empty())
    return reason;
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  if (!plan.unsupported.empty()) return plan.unsupported;
  if (std::string reason = unsupported_sizes(plan); !reason.empty()) return reason;
  return fp8_unsupported_on_gpu(device);
}

Packing fp8_packing_of(const GemmPlan& plan) {
  const auto codes = static_cast<size_t>(plan.n * plan.k),
             floats = static_cast<size_t>(plan.n) * sizeof(float);
  return {plan.b, kFp8Packing, plan.n, codes + 2 * floats};
}

Fp8Matrix fp8_matrix_at(void* data, int64_t rows, int64_t width) {
  auto* start = static_cast<uint8_t*>(data);
  auto* scales = reinterpret_cast<float*>(start + rows * width);
  return {start, scales, scales + rows};
}

Fp8Gemm::Fp8Gemm(const KernelArgs& args, const GemmPlan& plan, std::byte* scratch)
    : args_(args), plan_(plan), scratch_(scratch) {}

Fp8Matrix Fp8Gemm::place_of_a() const {
  return {bytes_at(plan_.a_codes_at), floats_at(plan_.a_scales_at)};
}

Fp8Matrix Fp8Gemm::round_a(bool norms) const {
  const Operand x = input(plan_.a);
  Fp8Matrix a = place_of_a();
  if (norms) a.norms = floats_at(plan_.a_norms_at);
  api().fp8.quantize_rows(session(args_), {.rows = plan_.m,
                                           .width = plan_.k,
                                           .x = x,
                                           .norm_weight = input(plan_.norm_weight),
                                           .bias = input(plan_.norm_bias),
                                           .eps = static_cast<float>(plan_.eps),
                                           .as = x.dtype,
                                           .out = a});
  return a;
}

Fp8Matrix Fp8Gemm::round_b(bool norms) const {
  const TensorView& weight = args_.ins[plan_.b];
  if (!weight.desc().packing.empty()) return fp8_matrix_at(weight.data(), plan_.n, plan_.k);
  const Fp8Matrix b = {bytes_at(plan_.b_codes_at), floats_at(plan_.b_scales_at),
                       norms ? floats_at(plan_.b_norms_at) : nullptr};
  const Operand w = operand(weight);
  if (plan_.b_transposed)
    api().fp8.quantize_rows(session(args_),
                            {.rows = plan_.n, .width = plan_.k, .x = w, .as = w.dtype, .out = b});
  else
    api().fp8.quantize_columns(session(args_), {.rows = plan_.k,
                                                .columns = plan_.n,
                                                .x = w,
                                                .tops = reinterpret_cast<uint32_t*>(bytes_at(plan_.tops_at)),
                                                .out = b});
  return b;
}

Operand Fp8Gemm::epilogue_bias() const {
  if (!plan_.casts_bias) return input(plan_.bias);
  const Operand cast = {scratch_ + plan_.bias_at, plan_.bias_type};
  api().gemms.finish(session(args_), {.rows = 1, .width = plan_.n, .gemm = input(plan_.bias), .out = cast});
  return cast;
}

GemmCall Fp8Gemm::call(const Fp8Matrix& a, const Operand& sums) const {
  const Fp8Matrix b = round_b();
  return {.m = plan_.m,
          .n = plan_.n,
          .k = plan_.k,
          .a = {a.codes, DType::kU8},
          .b = {b.codes, DType::kU8},
          .d = sums,
          .a_scales = a.scales,
          .b_scales = b.scales,
          .b_transposed = true,
          .workspace = scratch_};
}

void Fp8Gemm::multiply(const Fp8Matrix& a, const Operand& sums) const {
  api().gemms.gemm(session(args_), call(a, sums));
}

void Fp8Gemm::run(const Fp8Matrix& a, const Operand& result) const {
  const Operand sums = plan_.gemm_in_scratch ? Operand{scratch_ + plan_.gemm_at, plan_.gemm_type} : result;
  if (plan_.finished) {
    multiply(a, sums);
    return finish(sums, result);
  }
  GemmCall gemm = call(a, sums);
  if (plan_.residual >= 0) gemm.c = input(plan_.residual);
  gemm.bias = epilogue_bias();
  api().gemms.gemm(session(args_), gemm);
}

FusedGemmCall Fp8Gemm::fused_by(const Fp8Matrix& a, const Fp8Matrix& b) const {
  FusedGemmCall call = fused_call(args_, plan_);
  call.a = {a.codes, DType::kU8}, call.b = {b.codes, DType::kU8}, call.b_transposed = true;
  call.a_scales = a.scales, call.b_scales = b.scales;
  return call;
}

FusedGemmCall Fp8Gemm::fused(const Fp8Matrix& a) const {
  return fused_by(a, round_b());
}

void Fp8Gemm::run_to_codes(const Fp8Matrix& a, const Fp8Matrix& result) const {
  const Fp8Matrix b = round_b(true);
  float* tops = floats_at(plan_.bound_at);
  api().fp8.find_tops(session(args_),
                      {.n = plan_.n, .norms = b.norms, .bias = input(plan_.bias), .tops = tops});
  FusedGemmCall call = fused_by(a, b);
  call.d = {result.codes, DType::kU8};
  call.codes = {.scales = result.scales, .norms = a.norms, .tops = tops};
  api().gemms.hopper_fp8_gemm(session(args_), call);
}

void Fp8Gemm::finish(const Operand& gemm, const Operand& result) const {
  api().gemms.finish(session(args_), {.rows = plan_.m,
                                      .width = plan_.n,
                                      .gemm = gemm,
                                      .out = result,
                                      .bias = input(plan_.bias),
                                      .scale = input(plan_.scale),
                                      .residual = input(plan_.residual),
                                      .slope_at = input(plan_.slope_at),
                                      .act = plan_.act});
}

}  // namespace vitrail::cuda
