#include "backend/cuda/gemm_parse.h"

#include <algorithm>

#include "backend/cuda/api/fp8.h"
#include "backend/cuda/launch.h"
#include "backend/gemm_node.h"
#include "base/checked.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"

namespace vitrail::cuda {

namespace {

// The operands' types decide between exact and tf32, which are the same for 16-bit types.
std::string arithmetic_unsupported(Arithmetic arithmetic, Multiplier by) {
  if (by == Multiplier::kFp8)
    return arithmetic == Arithmetic::kFp8 ? "" : strf("computes in fp8, not %s", enum_name(arithmetic));
  const bool known =
      arithmetic == Arithmetic::kExact || (arithmetic == Arithmetic::kTF32 && by == Multiplier::kLibrary);
  return known ? "" : strf("has no %s GEMMs", enum_name(arithmetic));
}

// out[m, n] = x[m, k] . w[n, k], and the epilogue that follows.
void read_forward(const NodeView& node, Multiplier by, GemmPlan& plan) {
  plan.keeps = node.outs.size() > 1;
  plan.unsupported =
      gemm_unsupported({node.op, node.ins, node.outs.first(std::min<size_t>(node.outs.size(), 1))});
  if (!plan.unsupported.empty()) return;
  const GemmNode p = parse_gemm(node.op);
  if (plan.unsupported = arithmetic_unsupported(p.arithmetic, by); !plan.unsupported.empty()) return;
  plan.tf32 = p.arithmetic == Arithmetic::kTF32;
  if (p.norm && by != Multiplier::kFp8) plan.unsupported = "a layernorm before a GEMM runs on its own";
  if (p.norm) {
    plan.norm_weight = p.gamma;
    plan.norm_bias = p.beta;
    plan.eps = p.norm->eps();
  }
  const Shape &x = node.ins[p.x].shape, &w = node.ins[p.weight].shape;
  const MatmulExtents e = gemm_extents(p, x, w);
  plan.m = e.m;
  plan.n = e.n;
  plan.k = e.k;
  plan.a = p.x;
  plan.b = p.weight;
  plan.b_transposed = true;
  plan.bias = p.bias;
  plan.scale = p.scale;
  plan.residual = p.residual;
  if (p.gelu) plan.act = activation_of<Activation>(p.gelu->tanh_form());
  if (p.gelu_slope) {
    plan.act = activation_of<Activation>(p.gelu_slope->tanh_form());
    plan.keeps_slope = true;
  }
  if (p.is_patch_embed) {
    plan.images = p.x;
    plan.patch_rows = w.local('P');
    plan.patch_columns = w.local('Q');
  }
}

// dx[m, k] = dy[m, n] . w[n, k]
void read_dx(const NodeView& node, const std::vector<int>& sources, GemmPlan& plan) {
  const MatmulExtents e = linear_dx_extents(node.ins[sources[0]].shape, node.ins[sources[1]].shape);
  plan.m = e.m;
  plan.n = e.k;
  plan.k = e.n;
  plan.a = sources[0];
  plan.b = sources[1];
}

// dw[n, k] = sum over m of dy[m, n] x[m, k]
void read_dw(const NodeView& node, const std::vector<int>& sources, GemmPlan& plan) {
  const MatmulExtents e = linear_dw_extents(node.ins[sources[0]].shape, node.ins[sources[1]].shape);
  plan.m = e.n;
  plan.n = e.k;
  plan.k = e.m;
  plan.a = sources[1];
  plan.b = sources[0];
  plan.a_transposed = true;
}

void read_patches_dw(const NodeView& node, const std::vector<int>& sources, const Shape& w, GemmPlan& plan) {
  plan.m = w.local('D');
  plan.n = w.elems() / plan.m;
  plan.k = node.ins[sources[1]].elems() / plan.m;
  plan.a = sources[1];
  plan.b = sources[0];
  plan.a_transposed = true;
  plan.images = plan.b;
  plan.patch_rows = w.local('P');
  plan.patch_columns = w.local('Q');
}

// The gradient of a linear, alone or followed by the accumulation into its gradient sum or by the derivative
// of a gelu, computed or kept, which may sum the columns.
void read_gradient(const NodeView& node, Multiplier by, GemmPlan& plan) {
  const Op* op = &node.op;
  std::vector<int> sources = {0, 1};
  if (const auto* fused = dynamic_cast<const FusedOp*>(op)) {
    const FusedOp::Member &first = fused->members()[0], &last = fused->members().back();
    op = first.op.get();
    sources = inputs_of(first);
    const auto* slope = dynamic_cast<const GeluGradOp*>(last.op.get());
    const bool flows =
        fused->members().size() == 2 && last.sources.size() == 2 && last.sources[1] == made_by(0);
    const auto* kept_slope = dynamic_cast<const GeluSlopeGradOp*>(last.op.get());
    if (flows && slope && is<LinearDxOp>(*op)) {
      plan.slope_at = last.sources[0].input();
      plan.act = activation_of<Activation>(slope->tanh_form());
      plan.sums = slope->row_sums();
    } else if (flows && kept_slope && is<LinearDxOp>(*op)) {
      plan.slope_at = last.sources[0].input();
      plan.sums = kept_slope->row_sums();
    } else if (flows && is<AccumulateOp>(*last.op)) {
      plan.target = last.sources[0].input();
    } else {
      plan.unsupported = "no GEMM, nor the gradient of one, that runs as one kernel";
    }
  }
  if (plan.unsupported.empty()) plan.unsupported = arithmetic_unsupported(arithmetic_of(*op), by);
  if (!plan.unsupported.empty()) return;
  plan.tf32 = arithmetic_of(*op) == Arithmetic::kTF32;
  if (is<LinearDxOp>(*op)) return read_dx(node, sources, plan);
  if (is<LinearDwOp>(*op)) return read_dw(node, sources, plan);
  if (is<PatchEmbedDwOp>(*op)) {
    const TensorDesc& w = plan.target < 0 ? node.outs[0] : node.ins[plan.target];
    return read_patches_dw(node, sources, w.shape, plan);
  }
  plan.unsupported = "no GEMM, nor the gradient of one";
}

bool holds_forward(const Op& op) {
  if (const auto* fused = dynamic_cast<const FusedOp*>(&op)) {
    for (const FusedOp::Member& member : fused->members())
      if (is<LinearOp, PatchEmbedOp>(*member.op)) return true;
    return false;
  }
  return is<LinearOp, PatchEmbedOp>(op);
}

const TensorDesc& result_of(const NodeView& node, const GemmPlan& plan) {
  return plan.target < 0 ? node.outs[0] : node.ins[plan.target];
}

// cuBLASLt's epilogue adds a bias and a matrix of the result's type; its gelu is the tanh form, of 16-bit
// accuracy, and comes after both. In fp8 a bias has 16 bits, bf16 where the result has more.
bool epilogue_suffices(const NodeView& node, const GemmPlan& plan, Multiplier by) {
  const DType out = result_of(node, plan).dtype, in = node.ins[plan.a].dtype;
  if (out != in && out != DType::kF32) return false;
  if (by == Multiplier::kFp8 && plan.bias >= 0 && out == DType::kF32 && in != DType::kBF16) return false;
  if (plan.scale >= 0 || plan.slope_at >= 0) return false;
  if (plan.residual >= 0 && node.ins[plan.residual].dtype != out) return false;
  if (plan.act == Activation::kNone) return true;
  return plan.act == Activation::kGeluTanh && plan.residual < 0 && by == Multiplier::kLibrary &&
         out != DType::kF32;
}

// cuBLASLt's 16-bit kernels need rows of whole 16 bytes. Patches of other sizes get zeros after them, and the
// weight gets them in a copy; the weight's gradient is computed with them, and added or copied without.
void pad_patches(const NodeView& node, GemmPlan& plan) {
  const bool forward = plan.images == plan.a;
  int64_t& length = forward ? plan.k : plan.n;
  if (size_of(node.ins[plan.images].dtype) != 2 || length % 8 == 0 || (!forward && plan.finished)) return;
  length = round_up(length, int64_t{8});
  plan.pads_weight = forward;
  plan.cuts_result = !forward;
  plan.gemm_in_scratch |= plan.cuts_result;
}

void lay_out_scratch(const NodeView& node, Multiplier by, GemmPlan& plan) {
  size_t end = by == Multiplier::kTiles ? 0 : kWorkspaceBytes;
  const auto take = [&](bool wanted, int64_t elems, DType dtype) {
    const size_t at = end;
    if (wanted) end += round_up(static_cast<size_t>(elems) * size_of(dtype), 256);
    return at;
  };
  plan.bias_at = take(plan.casts_bias, plan.n, plan.bias_type);
  plan.gemm_at = take(plan.gemm_in_scratch, plan.m * plan.n, plan.gemm_type);
  const int64_t patches = plan.images == plan.a ? plan.m * plan.k : plan.k * plan.n;
  plan.patches_at = take(plan.images >= 0, patches, node.ins[std::max(plan.images, 0)].dtype);
  plan.weight_at = take(plan.pads_weight, plan.n * plan.k, node.ins[plan.b].dtype);
  const bool fp8 = by == Multiplier::kFp8, rounds_b = fp8 && node.ins[plan.b].packing.empty();
  plan.a_codes_at = take(fp8, plan.m * plan.k, DType::kU8);
  plan.a_scales_at = take(fp8, plan.m, DType::kF32);
  plan.a_norms_at = take(fp8, plan.m, DType::kF32);
  plan.b_codes_at = take(rounds_b, plan.n * plan.k, DType::kU8);
  plan.b_scales_at = take(rounds_b, plan.n, DType::kF32);
  plan.b_norms_at = take(rounds_b, plan.n, DType::kF32);
  plan.tops_at = take(rounds_b && !plan.b_transposed, fp8_slices(plan.k) * plan.n, DType::kF32);
  plan.bound_at = take(fp8, 2, DType::kF32);
  plan.scratch_bytes = end > 0 ? end + 256 : 0;
}

}  // namespace

GemmPlan plan_gemm(const NodeView& node, Multiplier by) {
  GemmPlan plan;
  if (holds_forward(node.op))
    read_forward(node, by, plan);
  else
    read_gradient(node, by, plan);
  if (!plan.unsupported.empty()) return plan;
  const TensorDesc& result = result_of(node, plan);
  plan.finished = !epilogue_suffices(node, plan, by);
  plan.gemm_type = plan.finished ? node.ins[plan.a].dtype : result.dtype;
  plan.gemm_in_scratch = plan.finished && (plan.residual >= 0 || plan.gemm_type != result.dtype);
  const bool narrow_bias = by == Multiplier::kFp8 && plan.gemm_type == DType::kF32;
  plan.bias_type = narrow_bias ? DType::kBF16 : plan.gemm_type;
  plan.casts_bias = !plan.finished && plan.bias >= 0 && by != Multiplier::kTiles &&
                    node.ins[plan.bias].dtype != plan.bias_type;
  if (plan.images >= 0 && by == Multiplier::kLibrary) pad_patches(node, plan);
  lay_out_scratch(node, by, plan);
  return plan;
}

Bound<FinishCall> finish_call(const NodeView& node, const GemmPlan& plan, const Place& gemm,
                              const Place& result) {
  Bound<FinishCall> call;
  call->rows = plan.m;
  call->width = plan.n;
  call->act = plan.act;
  call.bind(call->gemm, gemm).bind(call->out, result);
  call.bind(call->bias, input(node, plan.bias)).bind(call->slope_at, input(node, plan.slope_at));
  return call.bind(call->scale, input(node, plan.scale)).bind(call->residual, input(node, plan.residual));
}

Bound<FinishCall> cast_call(const GemmPlan& plan, const Place& bias, const Place& cast) {
  Bound<FinishCall> call;
  call->rows = 1;
  call->width = plan.n;
  return call.bind(call->gemm, bias).bind(call->out, cast);
}

std::string hopper_sizes_unsupported(const GemmPlan& plan) {
  constexpr int64_t kLongest = int64_t{1} << 30;  // rows, columns and terms are counted in 32 bits
  for (int64_t row : {plan.k, plan.n})
    if (row % 8 != 0)
      return strf("rows of %lld 16-bit elements are not whole 16 bytes", static_cast<long long>(row));
  if (std::max({plan.m, plan.n, plan.k}) > kLongest) return "a matrix is too long";
  return {};
}

std::string hopper_epilogue_unsupported(const NodeView& node, const GemmPlan& plan) {
  if (plan.act == Activation::kGeluTanh) return "has the erf form of the gelu only";
  if (plan.act != Activation::kNone && (plan.scale >= 0 || plan.residual >= 0)) return "ends with the gelu";
  if (plan.scale >= 0 && plan.residual < 0) return "scales what is added to a residual only";
  if (plan.residual >= 0 && node.ins[plan.residual].dtype != node.ins[plan.a].dtype)
    return "adds a residual of its own type";
  return {};
}

Bound<FusedGemmCall> fused_call(const NodeView& node, const GemmPlan& plan) {
  Bound<FusedGemmCall> call;
  call->m = plan.m;
  call->n = plan.n;
  call->k = plan.k;
  call->b_transposed = plan.b_transposed;
  call->act = plan.act;
  call.bind(call->a, input(node, plan.a)).bind(call->b, input(node, plan.b)).bind(call->d, output(node));
  call.bind(call->bias, input(node, plan.bias)).bind(call->scale, input(node, plan.scale));
  return call.bind(call->residual, input(node, plan.residual));
}

size_t partial_sum_bytes(const GemmPlan& plan) {
  // A cluster's last stack may have a tile too many.
  const int64_t parts = plan.sums ? hopper_sum_parts(plan.m + kHopperTileRows) : 0;
  return static_cast<size_t>(parts * plan.n) * sizeof(float);
}

void add_training(Bound<FusedGemmCall>& call, const NodeView& node, const GemmPlan& plan,
                  const Place& partials) {
  if (plan.keeps) call.bind(call->kept, output(node, 1));
  call->keeps_slope = plan.keeps_slope;
  call.bind(call->slope_at, input(node, plan.slope_at));
  if (plan.sums) call.bind(call->sums.target, output(node, 1)).bind(call->sums.partials, partials);
}

}  // namespace vitrail::cuda
