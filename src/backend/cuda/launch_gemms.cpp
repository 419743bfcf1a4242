// Launches of GEMMs and their gradients, alone or fused with their neighbours.
#include <utility>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"

namespace vitrail::cuda {

namespace {

// cuBLASLt's 16-bit kernels need rows that start on 16 bytes; those of f32 take any.
std::string unsupported_rows(const NodeView& node, const GemmPlan& plan) {
  const DType a = node.ins[plan.a].dtype, b = node.ins[plan.b].dtype;
  if (a != b) return strf("multiplies one type only, not %s and %s", to_string(a), to_string(b));
  if (a == DType::kF32) return {};
  const int64_t a_row = plan.a_transposed ? plan.m : plan.k, b_row = plan.b_transposed ? plan.k : plan.n;
  for (int64_t row : {a_row, b_row, plan.n})
    if (row % 8 != 0)
      return strf("rows of %lld 16-bit elements are not whole 16 bytes", static_cast<long long>(row));
  return {};
}

// Returns why the node is no GEMM of these operands, whatever it makes of the result.
std::string unsupported_gemm(const NodeView& node, const DeviceInfo& device, Multiplier by) {
  if (std::string reason = declines_unless_plain(node, device); !reason.empty()) return reason;
  const GemmPlan plan = plan_gemm(node, by);
  if (!plan.unsupported.empty() || by == Multiplier::kTiles) return plan.unsupported;
  return unsupported_rows(node, plan);
}

template <Multiplier by>
std::string declines_gemm(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = unsupported_gemm(node, device, by); !reason.empty()) return reason;
  const GemmPlan plan = plan_gemm(node, by);
  return plan.keeps || plan.sums ? "makes one result" : "";
}

// Writes down the calls of one node.
class GemmCalls {
 public:
  GemmCalls(const NodeView& node, Multiplier by, int algorithm)
      : node_(node), by_(by), algorithm_(algorithm), plan_(plan_gemm(node, by)) {}

  Prepared prepared() && {
    if (plan_.images >= 0) gather();
    const Place gemm = plan_.gemm_in_scratch ? aligned_scratch(plan_.gemm_at, plan_.gemm_type) : result();
    multiply(gemm);
    if (plan_.finished) finish(gemm);
    if (plan_.cuts_result) {
      const TensorDesc& wanted = plan_.target < 0 ? node_.outs[0] : node_.ins[plan_.target];
      copy_rows(gemm, result(),
                {.rows = plan_.m,
                 .from_width = plan_.n,
                 .to_width = row_elems(wanted, plan_.m),
                 .from = {},
                 .to = {},
                 .adds = plan_.target >= 0});
    }
    return std::move(calls_).prepared(plan_.scratch_bytes);
  }

 private:
  Place in(int i) const { return input(node_, i); }
  Place result() const { return plan_.target < 0 ? output(node_) : in(plan_.target); }
  Place patches() const { return aligned_scratch(plan_.patches_at, node_.ins[plan_.images].dtype); }
  Place factor(int i) {
    if (i == plan_.images) return patches();
    return i == plan_.b && plan_.pads_weight ? padded_weight() : in(i);
  }
  static int64_t row_elems(const TensorDesc& desc, int64_t rows) {
    return rows == 0 ? 0 : desc.elems() / rows;
  }
  void copy_rows(const Place& from, const Place& to, const RowsCall& sizes) {
    Bound<RowsCall> call(sizes);
    calls_.add(&GemmApi::copy_rows, call.bind(call->from, from).bind(call->to, to));
  }
  Place padded_weight() {
    const TensorDesc& weight = node_.ins[plan_.b];
    const Place padded = aligned_scratch(plan_.weight_at, weight.dtype);
    copy_rows(in(plan_.b), padded,
              {.rows = plan_.n,
               .from_width = row_elems(weight, plan_.n),
               .to_width = plan_.k,
               .from = {},
               .to = {}});
    return padded;
  }

  void gather() {
    const Shape& x = node_.ins[plan_.images].shape;
    Bound<PatchesCall> call({.batch = x.local('B'),
                             .channels = x.local('C'),
                             .height = x.local('Y'),
                             .width = x.local('X'),
                             .rows = plan_.patch_rows,
                             .columns = plan_.patch_columns,
                             .length = plan_.images == plan_.a ? plan_.k : plan_.n,
                             .images = {},
                             .out = {}});
    call.bind(call->images, in(plan_.images)).bind(call->out, patches());
    calls_.add(&GemmApi::gather_patches, call);
  }

  // The bias in the type that cuBLASLt's epilogue requires.
  Place epilogue_bias() {
    if (!plan_.casts_bias) return in(plan_.bias);
    const Place cast = aligned_scratch(plan_.bias_at, plan_.bias_type);
    calls_.add(&GemmApi::finish, cast_call(plan_, in(plan_.bias), cast));
    return cast;
  }

  void multiply(const Place& gemm) {
    Bound<GemmCall> call;
    call->m = plan_.m;
    call->n = plan_.n;
    call->k = plan_.k;
    call->tf32 = plan_.tf32;
    call->a_transposed = plan_.a_transposed;
    call->b_transposed = plan_.b_transposed;
    call.bind(call->a, factor(plan_.a)).bind(call->b, factor(plan_.b)).bind(call->d, gemm);
    if (plan_.target >= 0 && !plan_.cuts_result) call.bind(call->c, result());
    if (!plan_.finished) {
      call.bind(call->c, in(plan_.residual)).bind(call->bias, epilogue_bias());
      call->act = plan_.act;
    }
    if (by_ == Multiplier::kTiles) return calls_.add(&GemmApi::tiled_gemm, call);
    call.bind(call->workspace, aligned_scratch(0));
    call->algorithm = algorithm_;
    calls_.add(&GemmApi::gemm, call);
  }

  void finish(const Place& gemm) { calls_.add(&GemmApi::finish, finish_call(node_, plan_, gemm, result())); }

  const NodeView& node_;
  Multiplier by_;
  int algorithm_;
  GemmPlan plan_;
  Calls calls_;
};

template <Multiplier by, int algorithm>
Prepared prepare_gemm(const NodeView& node, const DeviceInfo&) {
  return GemmCalls(node, by, algorithm).prepared();
}

template <Multiplier by>
Rounding rounding_of_gemm(const NodeView& node) {
  const GemmPlan plan = plan_gemm(node, by);
  const bool library = by == Multiplier::kLibrary && !plan.finished;
  return {.gemm = plan.finished || plan.target >= 0,
          .residual = library && plan.residual >= 0,
          .bias = plan.casts_bias,
          .gelu = library && plan.act != Activation::kNone};
}

template <Multiplier by, int algorithm = 0>
Kernel gemm_kernel(const char* name) {
  Kernel kernel = cuda_kernel(name, prepare_gemm<by, algorithm>, declines_gemm<by>);
  kernel.rounding = rounding_of_gemm<by>;
  return kernel;
}

// The kernel of one of cuBLASLt's algorithms, by its place in the library's list. The first runs where no
// table names another.
template <int algorithm>
Kernel library_kernel() {
  static const std::string name = algorithm == 0 ? "cublaslt" : strf("cublaslt %d", algorithm);
  Kernel kernel = gemm_kernel<Multiplier::kLibrary, algorithm>(name.c_str());
  kernel.only_by_table = algorithm > 0;
  return kernel;
}

template <int... algorithm>
std::vector<Kernel> library_kernels(std::integer_sequence<int, algorithm...>) {
  return {library_kernel<algorithm>()...};
}

}  // namespace

std::optional<TuneKey> gemm_key(const NodeView& node, const DeviceInfo& device) {
  if (!unsupported_gemm(node, device, Multiplier::kLibrary).empty()) return std::nullopt;
  const GemmPlan plan = plan_gemm(node, Multiplier::kLibrary);
  const DType from = node.ins[plan.a].dtype;
  std::string op = std::string(node.op.kind()) + " " + (plan.tf32 ? "tf32" : to_string(from));
  if (plan.gemm_type != from) op += std::string(" to ") + to_string(plan.gemm_type);
  if (plan.keeps || plan.sums) op += plan.keeps ? " kept" : " sums";
  return TuneKey{op, plan.m, plan.n, plan.k, 0, device.compute};
}

std::vector<OpKernels> gemm_kernels() {
  std::vector<Kernel> kernels = library_kernels(std::make_integer_sequence<int, kMostAlgorithms>());
  kernels.push_back(gemm_kernel<Multiplier::kTiles>("tiled product"));
  kernels.insert(kernels.begin(), {hopper_small_kernel(), hopper_gemm_kernel()});
  return {row<LinearOp>(kernels),     row<LinearDxOp>(kernels),     row<LinearDwOp>(kernels),
          row<PatchEmbedOp>(kernels), row<PatchEmbedDwOp>(kernels), fused_row(kernels)};
}

}  // namespace vitrail::cuda
