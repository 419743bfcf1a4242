// The Hopper GEMM of 16-bit matrices and of e4m3 codes: which of its kernels a call takes.
#include "backend/cuda/device/hopper_kernel.cuh"

namespace vitrail::cuda {

namespace {

// The gradient of a GEMM behind a gelu.
template <typename In, typename T, bool kAlong>
void launch_gradient(Session& session, const FusedGemmCall& call) {
  if (call.act == Activation::kNone)
    hopper::launch<In, T, kAlong, Epilogue::kTimes>(session, call);
  else
    hopper::launch<In, T, kAlong, Epilogue::kSlope>(session, call);
  hopper::finish_columns(session, call);
}

template <typename In, typename T>
void launch_kept(Session& session, const FusedGemmCall& call) {
  if (call.keeps_slope) return hopper::launch<In, T, true, Epilogue::kGeluSlope>(session, call);
  hopper::launch<In, T, true, Epilogue::kGeluKept>(session, call);
}

template <typename T>
void launch_for(Session& session, const FusedGemmCall& call) {
  if (call.slope_at.data) return launch_gradient<T, T, false>(session, call);
  if (!call.b_transposed) return hopper::launch<T, T, false, Epilogue::kPlain>(session, call);
  if (call.kept.data) return launch_kept<T, T>(session, call);
  if (call.act == Activation::kGeluErf) return hopper::launch<T, T, true, Epilogue::kGelu>(session, call);
  if (call.residual.data) return hopper::launch<T, T, true, Epilogue::kAdd>(session, call);
  hopper::launch<T, T, true, Epilogue::kPlain>(session, call);
}

}  // namespace

void hopper_gemm(Session& session, const FusedGemmCall& call) {
  call.a.dtype == DType::kBF16 ? launch_for<__nv_bfloat16>(session, call) : launch_for<__half>(session, call);
}

void hopper_fp8_gemm(Session& session, const FusedGemmCall& call) {
  using Codes = __nv_fp8_e4m3;
  using Result = __nv_bfloat16;
  if (call.codes.scales) return hopper::launch<Codes, Result, true, Epilogue::kGeluCodes>(session, call);
  if (call.kept.data) return launch_kept<Codes, Result>(session, call);
  VT_CHECK(call.slope_at.data, "the Hopper GEMM in fp8 ends in a gelu or its slope");
  launch_gradient<Codes, Result, true>(session, call);
}

}  // namespace vitrail::cuda
