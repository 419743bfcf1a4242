// GEMMs by cuBLASLt. The session keeps the list of algorithms for each GEMM: it is fetched once, and the same
// algorithm runs from then on, so results repeat bit for bit and launches can be captured.
#include <map>
#include <tuple>

#include "backend/cuda/device/gemms.cuh"
#include "backend/cuda/device/plugin_tables.cuh"
#include "backend/cuda/device/session.cuh"

namespace vitrail::cuda {

namespace {

// Everything that the choice of an algorithm depends on.
auto key_of(const GemmCall& c) {
  return std::make_tuple(c.m, c.n, c.k, c.a.dtype, c.b.dtype, c.d.dtype, c.a_transposed, c.b_transposed,
                         c.c.data != nullptr, c.bias.data != nullptr, c.act, c.tf32);
}
using GemmKey = decltype(key_of({}));

// cuBLASLt is column-major, so it sees the transpose of each row-major matrix: d' [n, m] = b' . a'.
struct Gemm {
  cublasLtMatmulDescOpaque_t matmul = {};
  cublasLtMatrixLayoutOpaque_t a = {}, b = {}, d = {};
  cublasLtMatmulHeuristicResult_t choices[kMostAlgorithms] = {};
  int count = 0;
};

constexpr uint32_t kAlignment = 64;  // in bytes, of every value of a plan

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDA_R_32F;
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kU8:
      return CUDA_R_8F_E4M3;
    default:
      throw Error(ErrorKind::kInternal, strf("cuBLASLt is given %s", to_string(dtype)));
  }
}

template <typename T>
void set(Gemm& gemm, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(&gemm.matmul, attribute, &value, sizeof value), "describing a GEMM");
}

cublasLtEpilogue_t epilogue_of(const GemmCall& call) {
  VT_CHECK(call.act != Activation::kGeluErf, "cuBLASLt's gelu is the tanh form");
  const bool gelu = call.act == Activation::kGeluTanh, bias = call.bias.data != nullptr;
  if (gelu) return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

void set_pointers(Gemm& gemm, const GemmCall& call) {
  if (call.bias.data) set(gemm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias.data);
  if (!call.a_scales) return;
  set(gemm, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.b_scales);
  set(gemm, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.a_scales);
}

// Sums of fp8 GEMMs stay in the tensor cores' own precision, which is far above that of the codes.
void set_fp8_modes(Gemm& gemm) {
  set(gemm, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
  for (auto which : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
    set(gemm, which, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
}

cublasLtMatrixLayoutOpaque_t layout(const Operand& matrix, int64_t rows, int64_t columns) {
  cublasLtMatrixLayoutOpaque_t result = {};
  check(cublasLtMatrixLayoutInit(&result, type_of(matrix.dtype), static_cast<uint64_t>(columns),
                                 static_cast<uint64_t>(rows), columns),
        "describing a matrix");
  return result;
}

void describe(Gemm& gemm, const GemmCall& call) {
  const cublasComputeType_t compute = call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescInit(&gemm.matmul, compute, CUDA_R_32F), "describing a GEMM");
  set(gemm, CUBLASLT_MATMUL_DESC_TRANSA, call.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(gemm, CUBLASLT_MATMUL_DESC_TRANSB, call.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(gemm, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call));
  if (call.bias.data) set(gemm, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(call.bias.dtype));
  if (call.a_scales) set_fp8_modes(gemm);
  set_pointers(gemm, call);
  gemm.a = call.a_transposed ? layout(call.a, call.k, call.m) : layout(call.a, call.m, call.k);
  gemm.b = call.b_transposed ? layout(call.b, call.n, call.k) : layout(call.b, call.k, call.n);
  gemm.d = layout(call.d, call.m, call.n);
}

// Only algorithms that keep partial sums in f32 are allowed.
cublasLtMatmulPreferenceOpaque_t preference_for(const GemmCall& call) {
  cublasLtMatmulPreferenceOpaque_t preference = {};
  check(cublasLtMatmulPreferenceInit(&preference), "choosing an algorithm");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
          "choosing an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_NONE;
  if (call.d.dtype == DType::kF32) reductions |= CUBLASLT_REDUCTION_SCHEME_INPLACE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(which, kAlignment);
  return preference;
}

std::string describe(const GemmCall& c) {
  return strf("%lld x %lld x %lld, %s by %s to %s%s%s%s", static_cast<long long>(c.m),
              static_cast<long long>(c.n), static_cast<long long>(c.k), to_string(c.a.dtype),
              to_string(c.b.dtype), to_string(c.d.dtype), c.c.data ? ", added" : "",
              c.bias.data ? ", bias" : "", c.act == Activation::kNone ? "" : ", gelu");
}

void choose(Session& session, Gemm& gemm, const GemmCall& call) {
  cublasLtMatmulPreferenceOpaque_t preference = preference_for(call);
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(session.blas, &gemm.matmul, &gemm.b, &gemm.a, &gemm.d, &gemm.d,
                                     &preference, kMostAlgorithms, gemm.choices, &found);
  for (int i = 0; i < (status == CUBLAS_STATUS_SUCCESS ? found : 0); ++i)
    if (gemm.choices[i].state == CUBLAS_STATUS_SUCCESS) gemm.choices[gemm.count++] = gemm.choices[i];
  VT_REQUIRE(gemm.count > 0, ErrorKind::kDevice, "cuBLASLt has no algorithm for a GEMM of %s (%s)",
             describe(call).c_str(), cublasLtGetStatusString(status));
}

}  // namespace

struct GemmCache {
  std::map<GemmKey, Gemm> known;
};

namespace {

Gemm& find(Session& session, const GemmCall& call) {
  if (!session.gemms) session.gemms = std::make_shared<GemmCache>();
  Gemm& gemm = session.gemms->known[key_of(call)];
  if (gemm.count == 0) {
    describe(gemm, call);
    choose(session, gemm, call);
  }
  return gemm;
}

}  // namespace

void gemm(Session& session, const GemmCall& call) {
  Gemm& known = find(session, call);
  const int algorithm = call.algorithm < known.count ? call.algorithm : 0;
  set_pointers(known, call);
  const float one = 1, beta = call.c.data ? 1.0f : 0.0f;
  const void* added = call.c.data ? call.c.data : call.d.data;
  check(cublasLtMatmul(session.blas, &known.matmul, &one, call.b.data, &known.b, call.a.data, &known.a, &beta,
                       added, &known.d, call.d.data, &known.d, &known.choices[algorithm].algo, call.workspace,
                       kWorkspaceBytes, session.stream),
        "a GEMM");
}

GemmApi gemm_api() {
  return {.gemm = gemm,
          .tiled_gemm = tiled_gemm,
          .hopper_gemm = hopper_gemm,
          .hopper_fp8_gemm = hopper_fp8_gemm,
          .small_gemm = small_gemm,
          .finish = finish_gemm,
          .gather_patches = gather_patches,
          .copy_rows = copy_rows};
}

}  // namespace vitrail::cuda
