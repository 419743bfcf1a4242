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

// Sets both factors as codes, with the scales of their rows.
template <typename Call>
void bind_codes(Bound<Call>& call, const Fp8Places& a, const Fp8Places& b) {
  call.bind(call->a, a.codes).bind(call->b, b.codes);
  call.bind(call->a_scales, a.scales).bind(call->b_scales, b.scales);
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

Fp8Places fp8_places(const Place& packed, int64_t rows, int64_t width) {
  Fp8Places places{packed, packed, packed};
  places.codes.dtype = DType::kU8;
  places.scales.offset += static_cast<size_t>(rows * width);
  places.norms.offset = places.scales.offset + static_cast<size_t>(rows) * sizeof(float);
  return places;
}

Fp8Gemm::Fp8Gemm(Calls& calls, const NodeView& node, const GemmPlan& plan, size_t scratch_at)
    : calls_(calls), node_(node), plan_(plan), scratch_at_(scratch_at) {}

Fp8Places Fp8Gemm::place_of_a() const {
  return {at(plan_.a_codes_at, DType::kU8), at(plan_.a_scales_at)};
}

Fp8Places Fp8Gemm::round_a(bool norms) {
  Fp8Places a = place_of_a();
  if (norms) a.norms = at(plan_.a_norms_at);
  const Place x = in(plan_.a);
  Bound<Fp8RowsCall> call;
  call->rows = plan_.m;
  call->width = plan_.k;
  call->eps = static_cast<float>(plan_.eps);
  call->as = x.dtype;
  call.bind(call->x, x);
  call.bind(call->norm_weight, in(plan_.norm_weight)).bind(call->bias, in(plan_.norm_bias));
  bind_matrix(call, call->out, a);
  calls_.add(&Fp8Api::quantize_rows, call);
  return a;
}

Fp8Places Fp8Gemm::round_b(bool norms) {
  const Place w = in(plan_.b);
  if (!node_.ins[plan_.b].packing.empty()) return fp8_places(w, plan_.n, plan_.k);
  Fp8Places b = {at(plan_.b_codes_at, DType::kU8), at(plan_.b_scales_at)};
  if (norms) b.norms = at(plan_.b_norms_at);
  if (plan_.b_transposed) {
    Bound<Fp8RowsCall> call;
    call->rows = plan_.n;
    call->width = plan_.k;
    call->as = w.dtype;
    bind_matrix(call.bind(call->x, w), call->out, b);
    calls_.add(&Fp8Api::quantize_rows, call);
  } else {
    Bound<Fp8ColumnsCall> call;
    call->rows = plan_.k;
    call->columns = plan_.n;
    bind_matrix(call.bind(call->x, w).bind(call->tops, at(plan_.tops_at)), call->out, b);
    calls_.add(&Fp8Api::quantize_columns, call);
  }
  return b;
}

Place Fp8Gemm::epilogue_bias() {
  if (!plan_.casts_bias) return in(plan_.bias);
  const Place cast = at(plan_.bias_at, plan_.bias_type);
  calls_.add(&GemmApi::finish, cast_call(plan_, in(plan_.bias), cast));
  return cast;
}

Bound<GemmCall> Fp8Gemm::call(const Fp8Places& a, const Place& sums) {
  const Fp8Places b = round_b();
  Bound<GemmCall> call;
  call->m = plan_.m;
  call->n = plan_.n;
  call->k = plan_.k;
  call->b_transposed = true;
  bind_codes(call, a, b);
  return call.bind(call->d, sums).bind(call->workspace, at(0));
}

void Fp8Gemm::multiply(const Fp8Places& a, const Place& sums) {
  calls_.add(&GemmApi::gemm, call(a, sums));
}

void Fp8Gemm::run(const Fp8Places& a, const Place& result) {
  const Place sums = plan_.gemm_in_scratch ? at(plan_.gemm_at, plan_.gemm_type) : result;
  if (plan_.finished) {
    multiply(a, sums);
    return calls_.add(&GemmApi::finish, finish_call(node_, plan_, sums, result));
  }
  Bound<GemmCall> gemm = call(a, sums);
  gemm.bind(gemm->c, in(plan_.residual)).bind(gemm->bias, epilogue_bias());
  calls_.add(&GemmApi::gemm, gemm);
}

Bound<FusedGemmCall> Fp8Gemm::fused_by(const Fp8Places& a, const Fp8Places& b) const {
  Bound<FusedGemmCall> call = fused_call(node_, plan_);
  call->b_transposed = true;
  bind_codes(call, a, b);
  return call;
}

Bound<FusedGemmCall> Fp8Gemm::fused(const Fp8Places& a) {
  return fused_by(a, round_b());
}

void Fp8Gemm::run_to_codes(const Fp8Places& a, const Fp8Places& result) {
  const Fp8Places b = round_b(true);
  const Place tops = at(plan_.bound_at);
  Bound<Fp8TopsCall> bound;
  bound->n = plan_.n;
  bound.bind(bound->norms, b.norms).bind(bound->bias, in(plan_.bias)).bind(bound->tops, tops);
  calls_.add(&Fp8Api::find_tops, bound);
  Bound<FusedGemmCall> call = fused_by(a, b);
  call.bind(call->d, result.codes).bind(call->codes.scales, result.scales);
  call.bind(call->codes.norms, a.norms).bind(call->codes.tops, tops);
  calls_.add(&GemmApi::hopper_fp8_gemm, call);
}

}  // namespace vitrail::cuda
