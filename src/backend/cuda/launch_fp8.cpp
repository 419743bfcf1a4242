// Launches of GEMMs in fp8: alone, fused with their neighbours, or two with the bias and gelu between them,
// in which the gelu's kernel, or the first GEMM's epilogue, rounds for the second. A weight is rounded when
// it is loaded, or on every call while it is trained.
#include <algorithm>

#include "backend/cuda/fp8_gemm.h"
#include "base/checked.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "ops/persistent.h"

namespace vitrail::cuda {

namespace {

// Returns why the packing of the inputs does not suit: exactly the named weights must be packed, or none of
// the inputs.
std::string packing_unsupported(const NodeView& node, std::initializer_list<int> weights, bool packed) {
  for (size_t i = 0; i < node.ins.size(); ++i) {
    const bool wanted = packed && std::count(weights.begin(), weights.end(), static_cast<int>(i)) > 0;
    if (node.ins[i].packing != (wanted ? kFp8Packing : ""))
      return wanted ? "the weight is not rounded yet" : "reads row-major values only";
  }
  return {};
}

// ---- one GEMM ----

template <bool packed>
std::string declines_fp8(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = fp8_unsupported(node, device); !reason.empty()) return reason;
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  if (plan.keeps || plan.sums) return "makes one result";
  if (packed && !plan.b_transposed) return "a gradient reads the weight as it is";
  return packing_unsupported(node, {plan.b}, packed);
}

Packing fp8_packing(const NodeView& node, const DeviceInfo& device) {
  if (!fp8_unsupported(node, device).empty()) return {};
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  return plan.b_transposed && !plan.keeps ? fp8_packing_of(plan) : Packing{};
}

Prepared prepare_fp8(const NodeView& node, const DeviceInfo&) {
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  Calls calls;
  Fp8Gemm gemm(calls, node, plan);
  gemm.run(gemm.round_a(), output(node));
  return std::move(calls).prepared(plan.scratch_bytes);
}

// ---- one GEMM by our own kernel, in training: its gelu is kept, or it ends in the gelu's slope ----

// Returns why our own kernel does not multiply these matrices in fp8, whatever follows; empty: it does.
std::string own_unsupported(const NodeView& node, const GemmPlan& plan) {
  if (node.ins[plan.a].dtype != DType::kBF16) return "reads bf16";
  if (plan.bias >= 0 && node.ins[plan.bias].dtype != DType::kBF16 && node.ins[plan.bias].dtype != DType::kF32)
    return "has no bias of that type";
  if (std::string reason = hopper_epilogue_unsupported(node, plan); !reason.empty()) return reason;
  return hopper_sizes_unsupported(plan);
}

std::string declines_own(const NodeView& node, const DeviceInfo& device) {
  if (std::string reason = fp8_unsupported(node, device); !reason.empty()) return reason;
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  if (!plan.keeps && plan.slope_at < 0) return "ends in a gelu that is kept, or in its slope";
  if (plan.keeps && plan.act == Activation::kNone) return "keeps what a gelu reads only";
  if (node.outs[0].dtype != DType::kBF16) return "writes bf16";
  if (plan.slope_at >= 0 && node.ins[plan.slope_at].dtype != DType::kBF16) return "reads bf16";
  if (std::string reason = own_unsupported(node, plan); !reason.empty()) return reason;
  return packing_unsupported(node, {plan.b}, false);
}

// The partial sums of the columns come after the plan's scratch.
Prepared prepare_own(const NodeView& node, const DeviceInfo&) {
  const GemmPlan plan = plan_gemm(node, Multiplier::kFp8);
  Calls calls;
  Fp8Gemm gemm(calls, node, plan);
  Bound<FusedGemmCall> call = gemm.fused(gemm.round_a());
  add_training(call, node, plan, aligned_scratch(plan.scratch_bytes - 256));
  calls.add(&GemmApi::hopper_fp8_gemm, call);
  return std::move(calls).prepared(plan.scratch_bytes + partial_sum_bytes(plan));
}

// ---- a GEMM, bias and gelu, and another GEMM ----

// The two GEMMs as nodes of their own; the second reads the first's result as an additional input.
class Chain {
 public:
  Chain(const NodeView& node) {
    const auto* fused = dynamic_cast<const FusedOp*>(&node.op);
    const std::vector<FusedOp::Member> none;
    const std::vector<FusedOp::Member>& members = fused ? fused->members() : none;
    const auto gelu = std::find_if(members.begin(), members.end(),
                                   [](const FusedOp::Member& m) { return is<GeluOp>(*m.op); });
    if (gelu == members.end() || gelu + 1 == members.end() || !is<LinearOp>(*(gelu + 1)->op)) {
      unsupported = "no two GEMMs with a gelu between";
      return;
    }
    const auto count = static_cast<int>(gelu - members.begin()) + 1;
    std::vector<FusedOp::Member> rest(gelu + 1, members.end());
    for (FusedOp::Member& member : rest)
      for (FusedOp::Source& source : member.sources)
        if (!source.is_input())
          source = source.member() < count ? FusedOp::Source(static_cast<int>(node.ins.size()))
                                           : made_by(source.member() - count);
    first_op_ = std::make_shared<FusedOp>(std::vector<FusedOp::Member>(members.begin(), gelu + 1));
    second_op_ = std::make_shared<FusedOp>(std::move(rest));
    ins.assign(node.ins.begin(), node.ins.end());
    hidden = first_op_->infer(ins);
    ins.push_back(hidden[0]);
    outs.assign(node.outs.begin(), node.outs.end());
    plan();
  }

  NodeView first_node() const { return {*first_op_, DescSpan(ins).first(ins.size() - 1), hidden}; }
  NodeView second_node() const { return {*second_op_, ins, outs}; }
  // The scratch of the first GEMM, the first GEMM's result, then the scratch of the second.
  size_t hidden_at() const { return first.scratch_bytes; }
  size_t second_at() const { return hidden_at() + round_up(hidden[0].bytes(), 256); }
  size_t scratch_bytes() const { return second_at() + second.scratch_bytes; }

  std::string unsupported;
  std::vector<TensorDesc> ins, hidden, outs;
  GemmPlan first, second;

 private:
  void plan() {
    first = plan_gemm(first_node(), Multiplier::kFp8);
    second = plan_gemm(second_node(), Multiplier::kFp8);
    for (const GemmPlan* one : {&first, &second})
      if (unsupported.empty()) unsupported = one->unsupported;
    if (unsupported.empty() && (first.scale >= 0 || first.residual >= 0 || second.norm_weight >= 0))
      unsupported = "more than a bias and a gelu between two GEMMs";
    if (second.keeps) unsupported = "makes one result";
  }

  OpPtr first_op_, second_op_;
};

std::string chain_unsupported(const Chain& chain, const DeviceInfo& device) {
  if (!chain.unsupported.empty()) return chain.unsupported;
  for (const NodeView& node : {chain.first_node(), chain.second_node()})
    if (std::string reason = fp8_unsupported(node, device); !reason.empty()) return reason;
  return {};
}

template <bool packed, bool own>
std::string declines_chain(const NodeView& node, const DeviceInfo& device) {
  const Chain chain(node);
  if (std::string reason = chain_unsupported(chain, device); !reason.empty()) return reason;
  if (std::string reason = own ? own_unsupported(chain.first_node(), chain.first) : ""; !reason.empty())
    return reason;
  return packing_unsupported(node, {chain.first.b, chain.second.b}, packed);
}

Packing chain_packing(const NodeView& node, const DeviceInfo& device) {
  const Chain chain(node);
  if (!chain_unsupported(chain, device).empty()) return {};
  return fp8_packing_of(node.ins[chain.first.b].packing.empty() ? chain.first : chain.second);
}

Prepared prepare_own_chain(const NodeView& node, const DeviceInfo&) {
  const Chain chain(node);
  Calls calls;
  Fp8Gemm first(calls, chain.first_node(), chain.first),
      second(calls, chain.second_node(), chain.second, chain.second_at());
  first.run_to_codes(first.round_a(true), second.place_of_a());
  second.run(second.place_of_a(), output(node));
  return std::move(calls).prepared(chain.scratch_bytes());
}

Prepared prepare_chain(const NodeView& node, const DeviceInfo&) {
  const Chain chain(node);
  Calls calls;
  Fp8Gemm first(calls, chain.first_node(), chain.first),
      second(calls, chain.second_node(), chain.second, chain.second_at());
  const Place hidden = aligned_scratch(chain.hidden_at(), chain.hidden[0].dtype);
  first.multiply(first.round_a(), hidden);
  Bound<Fp8RowsCall> rounding;
  rounding->rows = chain.first.m;
  rounding->width = chain.first.n;
  rounding->act = chain.first.act;
  rounding->as = hidden.dtype;
  rounding.bind(rounding->x, hidden).bind(rounding->bias, input(node, chain.first.bias));
  bind_matrix(rounding, rounding->out, second.place_of_a());
  calls.add(&Fp8Api::quantize_rows, rounding);
  second.run(second.place_of_a(), output(node));
  return std::move(calls).prepared(chain.scratch_bytes());
}

// ---- a weight at load ----

std::string declines_rounding(const NodeView& node, const DeviceInfo& device) {
  return node.outs[0].packing == kFp8Packing ? fp8_unsupported_on_gpu(device) : "not a weight for fp8";
}

// The weight is first rounded to its own type, in which a kernel that reads it row-major would find it.
Prepared prepare_rounding(const NodeView& node, const DeviceInfo&) {
  const TensorDesc& packed = node.outs[0];
  const int64_t rows = packed.packed_rows, width = rows == 0 ? 0 : packed.elems() / rows;
  Bound<Fp8RowsCall> call;
  call->rows = rows;
  call->width = width;
  call->as = packed.dtype;
  call.bind(call->x, input(node, 0));
  bind_matrix(call, call->out, fp8_places(output(node), rows, width));
  return prepared(&Fp8Api::quantize_rows, call);
}

}  // namespace

std::string unsupported_arithmetic(Arithmetic arithmetic, const DeviceInfo& device) {
  if (arithmetic == Arithmetic::kFp8) return fp8_unsupported_on_gpu(device);
  if (arithmetic == Arithmetic::kBF16 || arithmetic == Arithmetic::kInt8)
    return strf("a GPU has no GEMMs in %s of f32 values", enum_name(arithmetic));
  return {};
}

std::vector<OpKernels> fp8_kernels() {
  Kernel packed = cuda_kernel("cublaslt fp8", prepare_fp8, declines_fp8<true>);
  packed.packing = fp8_packing;
  const Kernel plain = cuda_kernel("cublaslt fp8, weight rounded too", prepare_fp8, declines_fp8<false>);
  const Kernel own = cuda_kernel("hopper fp8, weight rounded too", prepare_own, declines_own);
  const auto packing_both = [](Kernel kernel) {
    kernel.packing = chain_packing;
    return kernel;
  };
  return {
      row<LinearOp>({packed, plain}), row<LinearDxOp>({plain}),
      fused_row({packed, plain, own,
                 packing_both(
                     cuda_kernel("hopper and cublaslt fp8", prepare_own_chain, declines_chain<true, true>)),
                 cuda_kernel("hopper and cublaslt fp8, weights rounded too", prepare_own_chain,
                             declines_chain<false, true>),
                 packing_both(cuda_kernel("cublaslt fp8 twice", prepare_chain, declines_chain<true, false>)),
                 cuda_kernel("cublaslt fp8 twice, weights rounded too", prepare_chain,
                             declines_chain<false, false>)}),
      row<LoadParamOp>({cuda_kernel("fp8 rows", prepare_rounding, declines_rounding)})};
}

}  // namespace vitrail::cuda
