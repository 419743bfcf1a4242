// The launch of the fused node of a layernorm, a GEMM, its bias and attention with the first token as the
// only query.
#include <cmath>

#include "backend/cpu/attention/first_token.h"
#include "backend/cpu/launch.h"
#include "backend/gemm_node.h"
#include "ops/fused.h"

namespace vitrail::cpu {
namespace {

// The sizes alone, read from the node's output [B H E] and its inputs.
FirstAttentionArgs sizes_of(const GemmNode& p, DescSpan ins, const TensorDesc& out) {
  const int64_t batch = out.shape[0].local, heads = out.shape[1].local, size = out.shape[2].local;
  const int64_t width = ins[p.weight].elems() / (3 * heads * size);
  return {.batch = batch,
          .tokens = ins[p.x].elems() / (batch * width),
          .width = width,
          .heads = heads,
          .head_size = size,
          .norm = {},
          .scale = 1.0f / std::sqrt(static_cast<float>(size))};
}

std::string declines_first_attention(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  if (!p.attention || !is_first_attention(node.op) || p.is_patch_embed) return "no attention of one token";
  const FirstAttentionArgs sizes = sizes_of(p, node.ins, node.outs[0]);
  if (p.bias >= 0 && node.ins[p.bias].elems() != 3 * sizes.heads * sizes.head_size)
    return "the bias does not cover the GEMM's outputs";
  if (p.norm && node.ins[p.gamma].elems() != sizes.width)
    return "the layernorm does not cover what the GEMM contracts";
  if (p.arithmetic != Arithmetic::kExact) return strf("computes in f32, not %s", enum_name(p.arithmetic));
  return declines_unless_f32(node, device);
}

Prepared prepare_first_attention(const NodeView& node, const DeviceInfo& device) {
  const GemmNode p = parse_gemm(node.op);
  const FirstAttentionArgs sizes = sizes_of(p, node.ins, node.outs[0]);
  const ScratchNeed need = first_attention_scratch(isa_of(device), sizes, p.norm.has_value());
  return {need.total(device.threads), [p, sizes](const KernelArgs& args) {
            FirstAttentionArgs attention = sizes;
            attention.x = args.ins[p.x].as<float>();
            attention.weight = args.ins[p.weight].as<float>();
            if (p.bias >= 0) attention.bias = args.ins[p.bias].as<float>();
            if (p.norm)
              attention.norm = {args.ins[p.gamma].as<float>(), args.ins[p.beta].as<float>(),
                                static_cast<float>(p.norm->eps())};
            attention.out = args.outs[0].as<float>();
            parallel_first_attention(context_of(args), attention);
          }};
}

}  // namespace

Kernel first_token_attention() {
  return {.name = "one query by the tokens",
          .declines = declines_first_attention,
          .prepare = prepare_first_attention};
}

}  // namespace vitrail::cpu
