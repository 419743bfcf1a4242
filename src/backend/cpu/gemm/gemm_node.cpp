#include "backend/cpu/gemm/gemm_node.h"

namespace vitrail::cpu {

Epilogue epilogue_of(const KernelArgs& args, const GemmNode& p, int64_t n) {
  const auto floats = [&](int input) { return input < 0 ? nullptr : args.ins[input].as<float>(); };
  Epilogue e{
      .bias = floats(p.bias), .scale = floats(p.scale), .residual = floats(p.residual), .residual_stride = n};
  if (p.gelu) e.act = p.gelu->tanh_form() ? Activation::kGeluTanh : Activation::kGeluErf;
  return e;
}

std::string unsupported(const NodeView& node) {
  if (std::string reason = gemm_unsupported(node); !reason.empty()) return reason;
  for (const TensorDesc& desc : node.ins)
    if (desc.dtype != DType::kF32) return strf("takes f32 only, not %s", to_string(desc.dtype));
  return {};
}

LinearArgs linear_args(const KernelArgs& args, const GemmNode& p, const MatmulExtents& e) {
  LinearArgs linear{.a = args.ins[p.x].as<float>(),
                    .lda = e.k,
                    .c = args.outs[0].as<float>(),
                    .ldc = e.n,
                    .m = e.m,
                    .n = e.n,
                    .k = e.k,
                    .norm = {},
                    .epilogue = epilogue_of(args, p, e.n)};
  if (p.norm)
    linear.norm = {args.ins[p.gamma].as<float>(), args.ins[p.beta].as<float>(),
                   static_cast<float>(p.norm->eps())};
  return linear;
}

PatchEmbedArgs patch_args(const Shape& x, const Shape& w) {
  const int64_t n = w.local('D'), patches = (x.local('Y') / w.local('P')) * (x.local('X') / w.local('Q'));
  return {.batch = x.local('B'),
          .channels = x.local('C'),
          .height = x.local('Y'),
          .width = x.local('X'),
          .patch_h = w.local('P'),
          .patch_w = w.local('Q'),
          .n = n,
          .out_stride = n,
          .image_out_stride = n * patches};
}

}  // namespace vitrail::cpu
