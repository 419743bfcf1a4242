#include "backend/cuda/fp8_product.h"

namespace vitrail::cuda {

namespace {

// cuBLASLt takes a scale a row on this generation alone.
constexpr int kCompute = 90;

std::string misfit_of_sizes(const ProductPlan& plan) {
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

std::string fp8_misfit_of_card(const DeviceInfo& device) {
  if (device.compute == kCompute) return {};
  return strf("fp8 needs an NVIDIA card of compute capability 9.0; %s has %d.%d", device.name.c_str(),
              device.compute / 10, device.compute % 10);
}

std::string fp8_misfit(const NodeView& node, const DeviceInfo& device) {
  const std::vector<TensorDesc> ins = plain(node.ins);
  if (std::string reason = declines_unless_plain({node.op, ins, node.outs}, device); !reason.empty())
    return reason;
  const ProductPlan plan = plan_product(node, Multiplier::kFp8);
  if (!plan.misfit.empty()) return plan.misfit;
  if (std::string reason = misfit_of_sizes(plan); !reason.empty()) return reason;
  return fp8_misfit_of_card(device);
}

Packing fp8_packing_of(const ProductPlan& plan) {
  const auto codes = static_cast<size_t>(plan.n * plan.k), scales = static_cast<size_t>(plan.n) * 4;
  return {plan.b, kFp8Packing, plan.n, codes + scales};
}

Fp8Matrix fp8_matrix_at(void* data, int64_t codes) {
  auto* start = static_cast<uint8_t*>(data);
  return {start, reinterpret_cast<float*>(start + codes)};
}

Fp8Product::Fp8Product(const KernelArgs& args, const ProductPlan& plan, std::byte* scratch)
    : args_(args), plan_(plan), scratch_(scratch) {}

Fp8Matrix Fp8Product::matrix(size_t codes_at, size_t scales_at) const {
  return {reinterpret_cast<uint8_t*>(scratch_ + codes_at), reinterpret_cast<float*>(scratch_ + scales_at)};
}

Fp8Matrix Fp8Product::place_of_a() const {
  return matrix(plan_.a_codes_at, plan_.a_scales_at);
}

Fp8Matrix Fp8Product::round_a() const {
  const Operand x = input(plan_.a);
  api().fp8.quantize_rows(session(args_), {.rows = plan_.m,
                                           .width = plan_.k,
                                           .x = x,
                                           .norm_weight = input(plan_.norm_weight),
                                           .bias = input(plan_.norm_bias),
                                           .eps = static_cast<float>(plan_.eps),
                                           .as = x.dtype,
                                           .out = place_of_a()});
  return place_of_a();
}

Fp8Matrix Fp8Product::round_b() const {
  const TensorView& weight = args_.ins[plan_.b];
  if (!weight.desc().packing.empty()) return fp8_matrix_at(weight.data(), plan_.n * plan_.k);
  const Fp8Matrix b = matrix(plan_.b_codes_at, plan_.b_scales_at);
  const Operand w = operand(weight);
  if (plan_.b_transposed)
    api().fp8.quantize_rows(session(args_),
                            {.rows = plan_.n, .width = plan_.k, .x = w, .as = w.dtype, .out = b});
  else
    api().fp8.quantize_columns(session(args_), {.rows = plan_.k,
                                                .columns = plan_.n,
                                                .x = w,
                                                .tops = reinterpret_cast<uint32_t*>(scratch_ + plan_.tops_at),
                                                .out = b});
  return b;
}

Operand Fp8Product::epilogue_bias() const {
  if (!plan_.casts_bias) return input(plan_.bias);
  const Operand cast = {scratch_ + plan_.bias_at, plan_.bias_type};
  api().products.finish(session(args_),
                        {.rows = 1, .width = plan_.n, .product = input(plan_.bias), .out = cast});
  return cast;
}

GemmCall Fp8Product::call(const Fp8Matrix& a, const Operand& product) const {
  const Fp8Matrix b = round_b();
  return {.m = plan_.m,
          .n = plan_.n,
          .k = plan_.k,
          .a = {a.codes, DType::kU8},
          .b = {b.codes, DType::kU8},
          .d = product,
          .a_scales = a.scales,
          .b_scales = b.scales,
          .b_transposed = true,
          .workspace = scratch_};
}

void Fp8Product::multiply(const Fp8Matrix& a, const Operand& product) const {
  api().products.gemm(session(args_), call(a, product));
}

void Fp8Product::run(const Fp8Matrix& a, const Operand& result) const {
  const Operand product =
      plan_.product_in_scratch ? Operand{scratch_ + plan_.product_at, plan_.product_type} : result;
  if (plan_.finished) {
    multiply(a, product);
    return finish(product, result);
  }
  GemmCall gemm = call(a, product);
  if (plan_.residual >= 0) gemm.c = input(plan_.residual);
  gemm.bias = epilogue_bias();
  api().products.gemm(session(args_), gemm);
}

void Fp8Product::finish(const Operand& product, const Operand& result) const {
  api().products.finish(session(args_), {.rows = plan_.m,
                                         .width = plan_.n,
                                         .product = product,
                                         .out = result,
                                         .bias = input(plan_.bias),
                                         .scale = input(plan_.scale),
                                         .residual = input(plan_.residual),
                                         .slope_at = input(plan_.slope_at),
                                         .act = plan_.act});
}

}  // namespace vitrail::cuda
