// Products and their gradients, alone or fused with their neighbours.
#include <utility>

#include "backend/cuda/launch.h"
#include "backend/cuda/products_parse.h"

namespace vitrail::cuda {

namespace {

// cuBLASLt's 16-bit kernels want rows that start on 16 bytes; those of f32 take any.
std::string misfit_of_rows(const NodeView& node, const ProductPlan& plan) {
  const DType a = node.ins[plan.a].dtype, b = node.ins[plan.b].dtype;
  if (a != b) return strf("multiplies one type only, not %s and %s", to_string(a), to_string(b));
  if (a == DType::kF32) return {};
  const int64_t a_row = plan.a_transposed ? plan.m : plan.k, b_row = plan.b_transposed ? plan.k : plan.n;
  for (int64_t row : {a_row, b_row, plan.n})
    if (row % 8 != 0)
      return strf("rows of %lld 16-bit elements are not whole 16 bytes", static_cast<long long>(row));
  return {};
}

template <Multiplier by>
std::string declines_product(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = declines_unless_plain(node, device); !reason.empty()) return reason;
  const ProductPlan plan = plan_product(node, by);
  if (!plan.misfit.empty() || by == Multiplier::kTiles) return plan.misfit;
  return misfit_of_rows(node, plan);
}

template <Multiplier by>
size_t product_scratch_bytes(const NodeView& node, const DeviceInfo&) {
  return plan_product(node, by).scratch_bytes;
}

// The launches of one node.
class ProductRun {
 public:
  ProductRun(const KernelArgs& args, Multiplier by, int algorithm)
      : args_(args),
        by_(by),
        algorithm_(algorithm),
        plan_(plan_product(args, by)),
        products_(api().products) {
    const auto start = reinterpret_cast<uintptr_t>(args.scratch.data());
    scratch_ = args.scratch.data() + (256 - start % 256) % 256;
  }

  void run() const {
    if (plan_.pictures >= 0) gather();
    const Operand product =
        plan_.product_in_scratch ? Operand{scratch_ + plan_.product_at, plan_.product_type} : result();
    multiply(product);
    if (plan_.finished) finish(product);
  }

 private:
  Operand input(int i) const { return i < 0 ? Operand{} : operand(args_.ins[i]); }
  Operand result() const { return plan_.target < 0 ? operand(args_.outs[0]) : input(plan_.target); }
  Operand patches() const { return {scratch_ + plan_.patches_at, args_.ins[plan_.pictures].dtype()}; }
  Operand factor(int i) const { return i == plan_.pictures ? patches() : input(i); }

  void gather() const {
    const Shape& x = args_.ins[plan_.pictures].shape();
    products_.gather_patches(session(args_), {.batch = x.local('B'),
                                              .channels = x.local('C'),
                                              .height = x.local('Y'),
                                              .width = x.local('X'),
                                              .rows = plan_.patch_rows,
                                              .columns = plan_.patch_columns,
                                              .pictures = input(plan_.pictures),
                                              .out = patches()});
  }

  // In the type cuBLASLt wants it.
  Operand epilogue_bias() const {
    if (!plan_.casts_bias) return input(plan_.bias);
    const Operand cast = {scratch_ + plan_.bias_at, plan_.bias_type};
    products_.finish(session(args_),
                     {.rows = 1, .width = plan_.n, .product = input(plan_.bias), .out = cast});
    return cast;
  }

  void multiply(const Operand& product) const {
    GemmCall call{.m = plan_.m,
                  .n = plan_.n,
                  .k = plan_.k,
                  .a = factor(plan_.a),
                  .b = factor(plan_.b),
                  .d = product,
                  .tf32 = plan_.tf32,
                  .a_transposed = plan_.a_transposed,
                  .b_transposed = plan_.b_transposed};
    if (plan_.target >= 0) call.c = result();
    if (!plan_.finished) {
      if (plan_.residual >= 0) call.c = input(plan_.residual);
      call.bias = epilogue_bias();
      call.act = plan_.act;
    }
    if (by_ == Multiplier::kTiles) return products_.tiled_gemm(session(args_), call);
    call.workspace = scratch_;
    call.algorithm = algorithm_;
    products_.gemm(session(args_), call);
  }

  void finish(const Operand& product) const {
    products_.finish(session(args_), {.rows = plan_.m,
                                      .width = plan_.n,
                                      .product = product,
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
  ProductPlan plan_;
  const ProductsApi& products_;
  std::byte* scratch_;
};

template <Multiplier by, int algorithm>
void run_product(const KernelArgs& args) {
  ProductRun(args, by, algorithm).run();
}

template <Multiplier by>
Rounding rounding_of_product(const NodeView& node) {
  const ProductPlan plan = plan_product(node, by);
  const bool library = by == Multiplier::kLibrary && !plan.finished;
  return {.product = plan.finished || plan.target >= 0,
          .residual = library && plan.residual >= 0,
          .bias = plan.casts_bias,
          .gelu = library && plan.act != Activation::kNone};
}

template <Multiplier by, int algorithm = 0>
Kernel product_kernel(const char* name) {
  Kernel kernel =
      cuda_kernel(name, run_product<by, algorithm>, declines_product<by>, product_scratch_bytes<by>);
  kernel.rounding = rounding_of_product<by>;
  return kernel;
}

// By its place in cuBLASLt's list; the first is what runs where no table names another.
template <int algorithm>
Kernel library_kernel() {
  static const std::string name = algorithm == 0 ? "cublaslt" : strf("cublaslt %d", algorithm);
  Kernel kernel = product_kernel<Multiplier::kLibrary, algorithm>(name.c_str());
  kernel.on_request = algorithm > 0;
  return kernel;
}

template <int... algorithm>
std::vector<Kernel> library_kernels(std::integer_sequence<int, algorithm...>) {
  return {library_kernel<algorithm>()...};
}

}  // namespace

std::optional<TuneKey> product_key(const NodeView& node, const DeviceInfo& device) {
  if (!declines_product<Multiplier::kLibrary>(node, device).empty()) return std::nullopt;
  const ProductPlan plan = plan_product(node, Multiplier::kLibrary);
  const DType from = node.ins[plan.a].dtype;
  std::string op = std::string(node.op.kind()) + " " + (plan.tf32 ? "tf32" : to_string(from));
  if (plan.product_type != from) op += std::string(" to ") + to_string(plan.product_type);
  return TuneKey{op, plan.m, plan.n, plan.k, 0, device.compute};
}

std::vector<OpKernels> product_kernels() {
  std::vector<Kernel> kernels = library_kernels(std::make_integer_sequence<int, kMostAlgorithms>());
  kernels.push_back(product_kernel<Multiplier::kTiles>("tiled product"));
  kernels.insert(kernels.begin(), hopper_product());
  std::vector<OpKernels> list;
  for (std::string_view op : {"linear", "linear_dx", "linear_dw", "patch_embed", "patch_embed_dw", "fused"})
    list.push_back({op, kernels});
  return list;
}

}  // namespace vitrail::cuda
