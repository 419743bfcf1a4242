// Launches of the gradients of parameters: GEMMs and sums over rows that are written, or added to the
// parameter's gradient sum where a fused node ends in accumulate.
#include <algorithm>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/reduce/reduce.h"
#include "ops/concat_tokens.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"

namespace vitrail::cpu {

namespace {

// What a node sums, from which inputs, and the input that it is added to; -1: it is written to the output.
struct Sum {
  const Op* op = nullptr;
  std::vector<int> ins;
  int target = -1;
};

Sum parse_sum(const Op& op, size_t inputs) {
  Sum sum{&op, {}, -1};
  const auto* fused = dynamic_cast<const FusedOp*>(&op);
  if (!fused) {
    for (size_t i = 0; i < inputs; ++i) sum.ins.push_back(static_cast<int>(i));
    return sum;
  }
  const auto& members = fused->members();
  if (members.size() != 2 || !is<AccumulateOp>(*members[1].op) || members[1].sources[1] != made_by(0))
    return {};
  return {members[0].op.get(), inputs_of(members[0]), members[1].sources[0].input()};
}

// The sizes of one kind of sum, from the shapes of its inputs and of its target.
struct Extents {
  std::vector<Shape> ins;
  Shape out;
};
struct Target {
  float* data;
  bool add;
};
struct SumKind {
  std::string_view kind;
  ScratchNeed (*scratch)(const IsaKernels&, const Op&, const Extents&, bool add);
  void (*run)(const CpuContext&, const Op&, const Extents&, const std::vector<const float*>& ins, Target);
};

RowSumArgs row_sum_args(const Extents& e) {
  const int64_t width = e.out.elems();
  return {.stride = width, .rows = e.ins[0].elems() / width, .width = width};
}

RowSumArgs token_sum_args(const Extents& e) {
  const int64_t batch = e.ins[0][0].local;
  return {.stride = e.ins[0].elems() / batch, .rows = batch, .width = e.out.elems()};
}

ScratchNeed scratch_of(const RowSumArgs& args) {
  return row_sum_scratch(args.rows, args.width);
}

void run_row_sum(const CpuContext& context, RowSumArgs args, const float* x, const float* y, Target target) {
  args.x = x;
  args.y = y;
  args.out = target.data;
  args.add = target.add;
  parallel_row_sum(context, args);
}

const SumKind kSums[] = {
    {"linear_dw",
     [](const IsaKernels& isa, const Op&, const Extents& s, bool add) {
       const MatmulExtents e = linear_dw_extents(s.ins[0], s.ins[1]);
       return weight_grad_scratch(isa, e.m, e.n, e.k, add);
     },
     [](const CpuContext& context, const Op&, const Extents& s, const std::vector<const float*>& ins,
        Target to) {
       const MatmulExtents e = linear_dw_extents(s.ins[0], s.ins[1]);
       parallel_weight_grad(context, {ins[0], ins[1], to.data, e.m, e.n, e.k, to.add});
     }},
    {"patch_embed_dw",
     [](const IsaKernels& isa, const Op&, const Extents& s, bool add) {
       return patch_weight_grad_scratch(isa, patch_args(s.ins[0], s.out), add);
     },
     [](const CpuContext& context, const Op&, const Extents& s, const std::vector<const float*>& ins,
        Target to) {
       PatchEmbedArgs patches = patch_args(s.ins[0], s.out);
       patches.image = ins[0];
       parallel_patch_weight_grad(context, patches, ins[1], to.data, to.add);
     }},
    {"sum_rows",
     [](const IsaKernels&, const Op&, const Extents& s, bool) { return scratch_of(row_sum_args(s)); },
     [](const CpuContext& context, const Op&, const Extents& s, const std::vector<const float*>& ins,
        Target to) { run_row_sum(context, row_sum_args(s), ins[0], nullptr, to); }},
    {"scale_dw",
     [](const IsaKernels&, const Op&, const Extents& s, bool) { return scratch_of(row_sum_args(s)); },
     [](const CpuContext& context, const Op&, const Extents& s, const std::vector<const float*>& ins,
        Target to) { run_row_sum(context, row_sum_args(s), ins[0], ins[1], to); }},
    {"sum_tokens",
     [](const IsaKernels&, const Op&, const Extents& s, bool) { return scratch_of(token_sum_args(s)); },
     [](const CpuContext& context, const Op& op, const Extents& s, const std::vector<const float*>& ins,
        Target to) {
       const int64_t skipped = static_cast<const SumTokensOp&>(op).first() * s.ins[0][2].local;
       run_row_sum(context, token_sum_args(s), ins[0] + skipped, nullptr, to);
     }},
};

const SumKind* kind_of(const Sum& sum) {
  for (const SumKind& row : kSums)
    if (sum.op && sum.op->kind() == row.kind) return &row;
  return nullptr;
}

std::string declines_sum(const NodeView& node, const DeviceInfo& device) {
  if (!kind_of(parse_sum(node.op, node.ins.size()))) return "not a parameter's gradient added to its sum";
  return declines_unless_f32(node, device);
}

Prepared prepare_sum(const NodeView& node, const DeviceInfo& device) {
  const Sum sum = parse_sum(node.op, node.ins.size());
  const SumKind& kind = *kind_of(sum);
  Extents extents{{}, sum.target < 0 ? node.outs[0].shape : node.ins[sum.target].shape};
  for (int i : sum.ins) extents.ins.push_back(node.ins[i].shape);
  const ScratchNeed need = kind.scratch(isa_of(device), *sum.op, extents, sum.target >= 0);
  return {need.total(device.threads), [sum, &kind, extents](const KernelArgs& args) {
            const TensorView& target = sum.target < 0 ? args.outs[0] : args.ins[sum.target];
            std::vector<const float*> ins;
            for (int i : sum.ins) ins.push_back(args.ins[i].as<float>());
            kind.run(context_of(args), *sum.op, extents, ins, {target.as<float>(), sum.target >= 0});
          }};
}

Prepared prepare_mean_tokens(const NodeView& node, const DeviceInfo&) {
  const auto& op = static_cast<const MeanTokensOp&>(node.op);
  const Shape& x = node.ins[0].shape;
  const HeldTokens held = op.held(x[1]);
  const int64_t batch = x[0].local, width = x[2].local, image = x[1].local * width,
                all = x[1].extent - op.first();
  return {0, [=](const KernelArgs& args) {
            const CpuContext context = context_of(args);
            float* y = args.outs[0].as<float>();
            if (held.count == 0) {
              std::fill_n(y, batch * width, 0.0f);
              return;
            }
            parallel_mean_tokens(context, args.ins[0].as<float>() + held.first * width, batch, image,
                                 held.count, width, y);
            if (held.count < all)
              context.isa.multiply(y, static_cast<float>(held.count) / static_cast<float>(all), batch * width,
                                   y);
          }};
}

}  // namespace

Kernel chunked_sum() {
  return {.name = "sums by chunks", .declines = declines_sum, .prepare = prepare_sum};
}

std::vector<OpKernels> reduce_kernels() {
  return {
      {"mean_tokens", {rows_kernel(prepare_mean_tokens)}},
      {"patch_embed_dw", {chunked_sum()}},
      {"sum_rows", {chunked_sum()}},
      {"scale_dw", {chunked_sum()}},
      {"sum_tokens", {chunked_sum()}},
  };
}

}  // namespace vitrail::cpu
