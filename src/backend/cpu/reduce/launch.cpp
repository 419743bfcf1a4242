// Launches of the gradients of parameters: GEMMs and sums over rows that are written, or added to the
// parameter's gradient sum where a fused node ends in accumulate.
#include <algorithm>
#include <functional>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/gemm_node.h"
#include "backend/cpu/launch.h"
#include "backend/cpu/reduce/reduce.h"
#include "ops/bias.h"
#include "ops/concat_tokens.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/scale.h"

namespace vitrail::cpu {

namespace {

// Says what a node sums, from which inputs, and what input it is added to; -1: it is written to the output.
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

// A sum about to be prepared: what is known of its node, and the shape of what it is written or added to.
struct SumNode {
  const Op& op;
  std::vector<Shape> ins;
  Shape out;
  bool add;
  const IsaKernels& isa;
};
// The addresses of one launch; y is null for a sum of one input.
struct SumAddresses {
  const float *x, *y;
  float* out;
};
struct PreparedSum {
  ScratchNeed scratch;
  std::function<void(const CpuContext&, const SumAddresses&)> run;
};

PreparedSum prepare_linear_dw(const SumNode& node) {
  const MatmulExtents e = linear_dw_extents(node.ins[0], node.ins[1]);
  return {weight_grad_scratch(node.isa, e.m, e.n, e.k, node.add),
          [e, add = node.add](const CpuContext& context, const SumAddresses& at) {
            parallel_weight_grad(context, {at.x, at.y, at.out, e.m, e.n, e.k, add});
          }};
}

PreparedSum prepare_patch_embed_dw(const SumNode& node) {
  const PatchEmbedArgs patches = patch_args(node.ins[0], node.out);
  return {patch_weight_grad_scratch(node.isa, patches, node.add),
          [patches, add = node.add](const CpuContext& context, const SumAddresses& at) {
            PatchEmbedArgs args = patches;
            args.image = at.x;
            parallel_patch_weight_grad(context, args, at.y, at.out, add);
          }};
}

// A sum over rows, of which the first begins `skipped` elements behind the input's address.
PreparedSum prepare_rows(const RowSumArgs& sizes, int64_t skipped = 0) {
  return {row_sum_scratch(sizes.rows, sizes.width),
          [sizes, skipped](const CpuContext& context, const SumAddresses& at) {
            RowSumArgs args = sizes;
            args.x = at.x + skipped;
            args.y = at.y;
            args.out = at.out;
            parallel_row_sum(context, args);
          }};
}

PreparedSum prepare_row_sum(const SumNode& node) {
  const int64_t width = node.out.elems();
  return prepare_rows(
      {.stride = width, .rows = node.ins[0].elems() / width, .width = width, .add = node.add});
}

PreparedSum prepare_token_sum(const SumNode& node) {
  const int64_t batch = node.ins[0][0].local;
  return prepare_rows(
      {.stride = node.ins[0].elems() / batch, .rows = batch, .width = node.out.elems(), .add = node.add},
      static_cast<const SumTokensOp&>(node.op).first() * node.ins[0][2].local);
}

struct SumKind {
  bool (*serves)(const Op&);
  PreparedSum (*prepare)(const SumNode&);
};
constexpr SumKind kSums[] = {{is<LinearDwOp>, prepare_linear_dw},
                             {is<PatchEmbedDwOp>, prepare_patch_embed_dw},
                             {is<SumRowsOp, ScaleDwOp>, prepare_row_sum},
                             {is<SumTokensOp>, prepare_token_sum}};

const SumKind* kind_of(const Sum& sum) {
  for (const SumKind& kind : kSums)
    if (sum.op && kind.serves(*sum.op)) return &kind;
  return nullptr;
}

std::string declines_sum(const NodeView& node, const DeviceInfo& device) {
  if (!kind_of(parse_sum(node.op, node.ins.size()))) return "not a parameter's gradient added to its sum";
  return declines_unless_f32(node, device);
}

Prepared prepare_sum(const NodeView& node, const DeviceInfo& device) {
  const Sum sum = parse_sum(node.op, node.ins.size());
  const int x = sum.ins[0], y = sum.ins.size() > 1 ? sum.ins[1] : -1, target = sum.target;
  SumNode known{
      *sum.op, {}, target < 0 ? node.outs[0].shape : node.ins[target].shape, target >= 0, isa_of(device)};
  for (const int i : sum.ins) known.ins.push_back(node.ins[i].shape);
  const PreparedSum prepared = kind_of(sum)->prepare(known);
  return {prepared.scratch.total(device.threads), [=, run = prepared.run](const KernelArgs& args) {
            run(context_of(args), {.x = args.ins[x].as<float>(),
                                   .y = y < 0 ? nullptr : args.ins[y].as<float>(),
                                   .out = (target < 0 ? args.outs[0] : args.ins[target]).as<float>()});
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
      row<MeanTokensOp>({rows_kernel(prepare_mean_tokens)}),
      row<PatchEmbedDwOp>({chunked_sum()}),
      row<SumRowsOp>({chunked_sum()}),
      row<ScaleDwOp>({chunked_sum()}),
      row<SumTokensOp>({chunked_sum()}),
  };
}

}  // namespace vitrail::cpu
