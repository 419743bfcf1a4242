// The Hopper GEMM of 16-bit matrices and of e4m3 codes: which of its kernels a call takes.
#include "backend/cuda/device/hopper_kernel.cuh"

namespace vitrail::cuda {

namespace {

template <typename T>
void launch_for(Session& session, const FusedGemmCall& call) {
  if (call.slope_at.data) {
    hopper::launch<T, T, false, Epilogue::kSlope>(session, call);
    return hopper::finish_columns(session, call);
  }
  if (!call.b_transposed) return hopper::launch<T, T, false, Epilogue::kPlain>(session, call);
  if (call.kept.data) return hopper::launch<T, T, true, Epilogue::kGeluKept>(session, call);
  if (call.act == Activation::kGeluErf) return hopper::launch<T, T, true, Epilogue::kGelu>(session, call);
  if (call.residual.data) return hopper::launch<T, T, true, Epilogue::kAdd>(session, call);
  hopper::launch<T, T, true, Epilogue::kPlain>(session, call);
}

}  // namespace

void hopper_gemm(Session& session, const FusedGemmCall& call) {
  call.a.dtype == DType::kBF16 ? launch_for<__nv_bfloat16>(session, call) : launch_for<__half>(session, call);
}

void hopper_fp8_gemm(Session& session, const FusedGemmCall& call) {
  if (call.codes.scales) return hopper::launch<__nv_fp8_e4m3, __nv_bfloat16, true, Epilogue::kGeluCodes>(session, call);
  if (call.kept.data) return hopper::launch<__nv_fp8_e4m3, __nv_bfloat16, true, Epilogue::kGeluKept>(session, call);
  VT_CHECK(call.slope_at.data, "the Hopper GEMM in fp8 ends in a gelu or its slope");
  hopper::launch<__nv_fp8_e4m3, __nv_bfloat16, true, Epilogue::kSlope>(session, call);
  hopper::finish_columns(session, call);
}

}  // namespace vitrail::cuda
