// Launches of GEMMs and their gradients, alone or fused with their neighbours.
#include <utility>

#include "backend/cuda/gemm_parse.h"
#include "backend/cuda/launch.h"

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

// Why the node is no GEMM of these operands, whatever it makes of the result.
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

template <Multiplier by>
size_t gemm_scratch_bytes(const NodeView& node, const DeviceInfo&) {
  return plan_gemm(node, by).scratch_bytes;
}

// The launches of one node.
class GemmRun {
 public:
  GemmRun(const KernelArgs& args, Multiplier by, int algorithm)
      : args_(args), by_(by), algorithm_(algorithm), plan_(plan_gemm(args, by)), gemms_(api().gemms) {
    const auto start = reinterpret_cast<uintptr_t>(args.scratch.data());
    scratch_ = args.scratch.data() + (256 - start % 256) % 256;
  }

  void run() const {
    if (plan_.images >= 0) gather();
    const Operand gemm =
        plan_.gemm_in_scratch ? Operand{scratch_ + plan_.gemm_at, plan_.gemm_type} : result();
    multiply(gemm);
    if (plan_.finished) finish(gemm);
    if (plan_.cuts_result)
      gemms_.copy_rows(session(args_), {.rows = plan_.m,
                                        .from_width = plan_.n,
                                        .to_width = row_elems(result_desc(), plan_.m),
                                        .from = gemm,
                                        .to = result(),
                                        .adds = plan_.target >= 0});
  }

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  Operand result() const { return plan_.target < 0 ? operand(args_.outs[0]) : input(plan_.target); }
  Operand patches() const { return {scratch_ + plan_.patches_at, args_.ins[plan_.images].dtype()}; }
  Operand factor(int i) const {
    if (i == plan_.images) return patches();
    return i == plan_.b && plan_.pads_weight ? padded_weight() : input(i);
  }
  static int64_t row_elems(const TensorDesc& desc, int64_t rows) { return desc.elems() / rows; }
  TensorDesc result_desc() const {
    return plan_.target < 0 ? args_.outs[0].desc() : args_.ins[plan_.target].desc();
  }
  Operand padded_weight() const {
    const TensorView& weight = args_.ins[plan_.b];
    const Operand padded = {scratch_ + plan_.weight_at, weight.dtype()};
    gemms_.copy_rows(session(args_), {.rows = plan_.n,
                                      .from_width = row_elems(weight.desc(), plan_.n),
                                      .to_width = plan_.k,
                                      .from = operand(weight),
                                      .to = padded});
    return padded;
  }

  void gather() const {
    const Shape& x = args_.ins[plan_.images].shape();
    gemms_.gather_patches(session(args_), {.batch = x.local('B'),
                                           .channels = x.local('C'),
                                           .height = x.local('Y'),
                                           .width = x.local('X'),
                                           .rows = plan_.patch_rows,
                                           .columns = plan_.patch_columns,
                                           .length = plan_.images == plan_.a ? plan_.k : plan_.n,
                                           .images = input(plan_.images),
                                           .out = patches()});
  }

  // The bias in the type that cuBLASLt's epilogue requires.
  Operand epilogue_bias() const {
    if (!plan_.casts_bias) return input(plan_.bias);
    const Operand cast = {scratch_ + plan_.bias_at, plan_.bias_type};
    gemms_.finish(session(args_), {.rows = 1, .width = plan_.n, .gemm = input(plan_.bias), .out = cast});
    return cast;
  }

  void multiply(const Operand& gemm) const {
    GemmCall call{.m = plan_.m,
                  .n = plan_.n,
                  .k = plan_.k,
                  .a = factor(plan_.a),
                  .b = factor(plan_.b),
                  .d = gemm,
                  .tf32 = plan_.tf32,
                  .a_transposed = plan_.a_transposed,
                  .b_transposed = plan_.b_transposed};
    if (plan_.target >= 0 && !plan_.cuts_result) call.c = result();
    if (!plan_.finished) {
      if (plan_.residual >= 0) call.c = input(plan_.residual);
      call.bias = epilogue_bias();
      call.act = plan_.act;
    }
    if (by_ == Multiplier::kTiles) return gemms_.tiled_gemm(session(args_), call);
    call.workspace = scratch_;
    call.algorithm = algorithm_;
    gemms_.gemm(session(args_), call);
  }

  void finish(const Operand& gemm) const {
    gemms_.finish(session(args_), {.rows = plan_.m,
                                   .width = plan_.n,
                                   .gemm = gemm,
                                   .out = result(),
                                   .bias = input(plan_.bias),
                                   .scale = input(plan_.scale),
                                   .residual = input(plan_.residual),
                                   .slope_at = input(plan_.slope_at),
                                   .act = plan_.act});
  }

  const KernelArgs& args_;
  Multiplier by_;
  int algorithm_;
  GemmPlan plan_;
  const GemmApi& gemms_;
  std::byte* scratch_;
};

template <Multiplier by, int algorithm>
void run_gemm(const KernelArgs& args) {
  GemmRun(args, by, algorithm).run();
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
  Kernel kernel = cuda_kernel(name, run_gemm<by, algorithm>, declines_gemm<by>, gemm_scratch_bytes<by>);
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
  std::vector<OpKernels> list;
  for (std::string_view op : {"linear", "linear_dx", "linear_dw", "patch_embed", "patch_embed_dw", "fused"})
    list.push_back({op, kernels});
  return list;
}

}  // namespace vitrail::cuda
