// The fused node of a layernorm, a product, its bias and the attention of the first token.
#include <cmath>

#include "backend/cpu/context.h"
#include "backend/cpu/first_attention.h"
#include "backend/cpu/launch.h"
#include "backend/product.h"
#include "ops/fused.h"

namespace vitrail::cpu {
namespace {

// Sizes alone, from the node's one output [B H E] and what it reads.
FirstAttentionArgs sizes_of(const Product& p, DescSpan ins, const TensorDesc& out) {
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

}  // namespace

std::string declines_first_attention(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  if (!p.attention || !is_first_attention(node.op) || p.is_patch_embed) return "no attention of one token";
  const FirstAttentionArgs sizes = sizes_of(p, node.ins, node.outs[0]);
  if (p.bias >= 0 && node.ins[p.bias].elems() != 3 * sizes.heads * sizes.head_size)
    return "the bias does not cover the product's outputs";
  if (p.norm && node.ins[p.gamma].elems() != sizes.width)
    return "the layernorm does not cover what the product contracts";
  if (p.arithmetic != Arithmetic::kExact) return strf("computes in f32, not %s", enum_name(p.arithmetic));
  return declines_unless_f32(node, device);
}

size_t first_attention_scratch_bytes(const NodeView& node, const DeviceInfo& device) {
  const Product p = parse_product(node.op);
  const FirstAttentionArgs args = sizes_of(p, node.ins, node.outs[0]);
  return first_attention_scratch(isa_of(device), args, p.norm != nullptr).total(device.threads);
}

void run_first_attention(const KernelArgs& args) {
  const Product p = parse_product(args.op);
  std::vector<TensorDesc> ins;
  for (const TensorView& view : args.ins) ins.push_back(view.desc());
  FirstAttentionArgs attention = sizes_of(p, ins, args.outs[0].desc());
  attention.x = args.ins[p.x].as<float>();
  attention.weight = args.ins[p.weight].as<float>();
  if (p.bias >= 0) attention.bias = args.ins[p.bias].as<float>();
  if (p.norm)
    attention.norm = {args.ins[p.gamma].as<float>(), args.ins[p.beta].as<float>(),
                      static_cast<float>(p.norm->eps())};
  attention.out = args.outs[0].as<float>();
  parallel_first_attention(context_of(args), attention);
}

}  // namespace vitrail::cpu
