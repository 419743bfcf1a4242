// Nodes that are fused with their neighbours, and nodes that are dropped.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/builder.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/persistent.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

// The whole program before and after, as stored text, shows what the pass did.
TEST(Fuse, JoinsGemmsWithTheirNeighbours) {
  EXPECT_EQ(
      to_string(fuse(record_vit(tiny_vit(1)))),
      "input images f32[B1 C3 Y16 X16]\n"
      "%4 f32[B1 N4 D8] = patch_embed+bias(images, patch_embed.proj.weight, patch_embed.proj.bias)  # "
      "patch_embed\n"
      "%6 f32[B1 N5 D8] = concat_tokens(cls_token, %4)  # tokens\n"
      "%8 f32[B1 N5 D8] = bias(%6, pos_embed)  # pos_embed\n"
      "%15 f32[B1 N5 T3 H2 E4] = layernorm+linear+bias{eps=1e-06}(%8, blocks.0.norm1.weight, "
      "blocks.0.norm1.bias, "
      "blocks.0.attn.qkv.weight, blocks.0.attn.qkv.bias)  # blocks.0.attn.qkv\n"
      "%16 f32[B1 H2 E4] = attention{queries=class_token}(%15)  # blocks.0.attn.softmax\n"
      "%21 f32[B1 D8] = select_token{index=0}(%8)  # blocks.0.attn.class\n"
      "%22 f32[B1 D8] = linear+bias+add(%16, blocks.0.attn.proj.weight, blocks.0.attn.proj.bias, %21)  # "
      "blocks.0.attn.proj\n"
      "%30 f32[B1 F16] = layernorm+linear+bias+gelu{eps=1e-06 erf}(%22, blocks.0.norm2.weight, "
      "blocks.0.norm2.bias, blocks.0.mlp.fc1.weight, blocks.0.mlp.fc1.bias)  # blocks.0.mlp.fc1\n"
      "%35 f32[B1 D8] = linear+bias+add(%30, blocks.0.mlp.fc2.weight, blocks.0.mlp.fc2.bias, %22)  # "
      "blocks.0.mlp.fc2\n"
      "%42 f32[B1 K3] = layernorm+linear+bias{eps=1e-06}(%35, norm.weight, norm.bias, head.weight, "
      "head.bias)  # head\n"
      "output logits = %42\n");
}

TEST(Fuse, KeepsWhatIsAskedForAsAnOutput) {
  const Program fused = fuse(record_vit(tiny_vit(1), {.layers = true}));
  for (const char* name : {"embed", "blocks.0", "tokens"}) EXPECT_NO_THROW(fused.output(name));
  EXPECT_NO_THROW(fused.validate());
}

TEST(Fuse, LeavesWorkUnchanged) {
  const Program plain = record_vit(tiny_vit(1)), fused = fuse(plain);
  EXPECT_EQ(plain.cost().flops, fused.cost().flops);
  EXPECT_LT(fused.cost().bytes, plain.cost().bytes);
  EXPECT_LT(fused.nodes.size(), plain.nodes.size());
}

size_t count(const Program& program, const std::string& kind) {
  const std::vector<std::string> all = kinds(program);
  return static_cast<size_t>(std::count(all.begin(), all.end(), kind));
}

TEST(Fuse, TheAttentionOfOneTokenTakesItsGemmInWhenAsked) {
  const RewriteTraits options{.first_attention = true};
  const Program plain = record_vit(tiny_vit(2)), fused = fuse(plain, options);
  EXPECT_EQ(count(fused, "layernorm+linear+bias+attention"), 1u) << to_string(fused);
  EXPECT_EQ(count(fused, "attention"), 1u) << "all tokens ask in the first block";
  EXPECT_LT(fused.cost().flops, plain.cost().flops);
  EXPECT_NO_THROW(fused.validate());

  VitConfig normed = tiny_vit(1);
  normed.qk_norm = true;
  EXPECT_EQ(count(fuse(record_vit(normed), options), "attention"), 1u) << "keys are not linear in the tokens";
  const Rewrites int8{.arithmetic = Arithmetic::kInt8, .traits = options};
  EXPECT_EQ(count(inference_after("fuse", record_vit(tiny_vit(1)), int8), "attention"), 1u)
      << "its GEMM is one of rounded rows";
  const PrecisionOptions half{.compute = DType::kBF16, .residual = DType::kBF16, .keep_masters = false};
  const Program halves = inference_after("precision", record_vit(tiny_vit(1)), {.precision = half});
  EXPECT_EQ(count(fuse(halves, options), "attention"), 1u) << "its values are rounded to 16 bits";
  const Program trained = fuse(record_step(tiny_vit(1)), options);
  EXPECT_EQ(count(trained, "attention"), 1u) << "the gradient reads queries, keys and values";
  const Program seen = record_vit(tiny_vit(1), {.attention = true});
  EXPECT_EQ(count(fuse(seen, options), "attention"), 1u) << "the weights are asked for";
}

// Queries, keys and values are computed for one token, 2 3d d instead of 2 n 3d d; scores and sums run over
// tokens of width d instead of a head's.
TEST(Fuse, TheWorkOfOneTokenIsCounted) {
  const Program fused = fuse(record_vit(tiny_vit(1)), {.first_attention = true});
  const auto node = std::find_if(fused.nodes.begin(), fused.nodes.end(),
                                 [](const Node& n) { return is_first_attention(*n.op); });
  ASSERT_NE(node, fused.nodes.end());
  const double tokens = 5, width = 8, heads = 2;
  std::vector<TensorDesc> ins;
  for (ValueId id : node->ins) ins.push_back(fused.values[id].desc);
  const double norm = LayernormOp(1e-6).flops({ins.data(), 3}, {&ins[0], 1});
  EXPECT_DOUBLE_EQ(node->op->flops(ins, node->op->infer(ins)),
                   norm + 2 * 3 * width * width + heads * tokens * (4 * width + 5));
}

TEST(Fuse, TakesLayerScaleButNotQkNormIntoTheGemm) {
  VitConfig config = tiny_vit(1);
  config.layer_scale = config.qk_norm = true;
  config.qkv_bias = false;
  EXPECT_EQ(kinds(fuse(record_vit(config))),
            (std::vector<std::string>{"patch_embed+bias", "concat_tokens", "bias", "layernorm+linear",
                                      "qk_norm", "attention", "select_token", "linear+bias+scale+add",
                                      "layernorm+linear+bias+gelu", "linear+bias+scale+add",
                                      "layernorm+linear+bias"}));
}

TEST(Fuse, JoinsTokensWithTheirPositionsWhereThereIsAKernel) {
  for (const DType residual : {DType::kF32, DType::kBF16}) {
    const PrecisionOptions narrow{.compute = DType::kBF16, .residual = residual, .keep_masters = false};
    const std::string joined = residual == DType::kF32 ? "concat_tokens+bias" : "concat_tokens+cast+bias";
    const Program low = inference_after("precision", record_vit(tiny_vit(1)), {.precision = narrow});
    EXPECT_EQ(count(fuse(low, {.positions = true}), joined), 1u);
    EXPECT_EQ(count(fuse(low), joined), 0u);
  }
}

TEST(Fuse, LeavesNormsApartWhenAsked) {
  const std::vector<std::string> found = kinds(fuse(record_vit(tiny_vit(1)), {.norms = nullptr}));
  EXPECT_EQ(std::count(found.begin(), found.end(), "layernorm"), 3);
  EXPECT_EQ(std::count(found.begin(), found.end(), "linear+bias+gelu"), 1);
}

TEST(Fuse, ANormReadTwiceStaysANode) {
  VitConfig config = tiny_vit(1);
  config.pool = Pool::kMap;
  config.class_token = false;
  // The last norm feeds the pooling's kv linear alone here, and is also an output with layers on.
  const std::vector<std::string> alone = kinds(fuse(record_vit(config)));
  const std::vector<std::string> shown = kinds(fuse(record_vit(config, {.layers = true})));
  EXPECT_EQ(std::count(alone.begin(), alone.end(), "layernorm"), 0);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), "layernorm"), 1);
}

// A bias per head covers only a part of a qkv linear's outputs: the kernel must never receive it as a row.
TEST(Fuse, LeavesABiasThatDoesNotCoverTheOutputsApart) {
  Builder b;
  const Dim d('D', 8), h('H', 2), e('E', 4);
  const ValueId x = b.input("x", {DType::kF32, {{'B', 1}, d}});
  const ValueId y = b.add<LinearOp>({x, b.parameter("w", {DType::kF32, {h, e, d}})}, "q");
  b.output("y", b.add<BiasOp>({y, b.parameter("per_head", {DType::kF32, {e}})}, "bias"));
  EXPECT_EQ(kinds(fuse(b.finish())), (std::vector<std::string>{"linear", "bias"}));
}

// A kernel adds the bias before the gelu and after no other op.
TEST(Fuse, MembersComeInOneOrderOnly) {
  Builder b;
  const ValueId x = b.input("x", {DType::kF32, {{'B', 2}, {'D', 4}}});
  const ValueId w = b.parameter("w", {DType::kF32, {{'F', 6}, {'D', 4}}});
  const ValueId bias = b.parameter("bias", {DType::kF32, {{'F', 6}}});
  const ValueId y = b.add<LinearOp>({x, w}, "y");
  const ValueId gelu = b.add<GeluOp>({y}, "gelu", false);
  b.output("out", b.add<BiasOp>({gelu, bias}, "late bias"));
  EXPECT_EQ(kinds(fuse(b.finish())), (std::vector<std::string>{"linear+gelu", "bias"}));
}

// A kernel adds one residual; the second stays a node.
TEST(Fuse, AMemberComesOnce) {
  Builder b;
  const TensorDesc rows{DType::kF32, {{'B', 2}, {'F', 6}}};
  const ValueId x = b.input("x", {DType::kF32, {{'B', 2}, {'D', 4}}});
  const ValueId w = b.parameter("w", {DType::kF32, {{'F', 6}, {'D', 4}}});
  const ValueId y = b.add<LinearOp>({x, w}, "y");
  const ValueId first = b.add<AddOp>({y, b.input("r", rows)}, "first");
  b.output("out", b.add<AddOp>({first, b.input("s", rows)}, "second"));
  EXPECT_EQ(kinds(fuse(b.finish())), (std::vector<std::string>{"linear+add", "add"}));
}

TEST(Fuse, MembersKeepTheNamesOfTheirNodes) {
  const Program fused = fuse(record_vit(tiny_vit(1)));
  const auto& op = dynamic_cast<const FusedOp&>(*fused.nodes[3].op);
  ASSERT_EQ(op.members().size(), 3u);
  EXPECT_EQ(op.members()[0].step, ModelStep::kNorm1);
  EXPECT_EQ(op.members()[2].step, ModelStep::kQkv);
}

TEST(Fuse, NodesAndTheirClonesAreFusedAlike) {
  VitConfig config = tiny_vit(2);
  config.layer_scale = true;
  const Program plain = record_step(config);
  const auto forward = [](const Program& program) {
    std::vector<std::string> result;
    for (const Node& node : program.nodes)
      if (node.phase == Phase::kForward) result.emplace_back(node.op->kind());
    return result;
  };
  const RewriteTraits options{.first_attention = true};
  for (const RecomputeOptions& again : {RecomputeOptions{Recompute::kMlp}, {Recompute::kBlock}}) {
    const Program fused = step_after("fuse", config, {.recompute = again, .join = false, .traits = options});
    EXPECT_EQ(forward(fused), forward(fuse(plain, options)));
    std::map<std::string, std::string_view> kind_of;
    for (const Node& node : fused.nodes) {
      const auto [known, fresh] = kind_of.try_emplace(node.name, node.op->kind());
      EXPECT_TRUE(fresh || known->second == node.op->kind()) << node.name;
    }
  }
}

TEST(Schedule, DropsWhatNobodyNeeds) {
  Program program = record_vit(tiny_vit(1), {.features = true});
  const size_t before = program.nodes.size();
  std::erase_if(program.outputs, [](const Output& out) { return out.name == "logits"; });
  const Program kept = schedule(program);
  EXPECT_EQ(kept.nodes.size(), before - 2);  // head and its bias
  EXPECT_EQ(kept.outputs.size(), 1u);
}

TEST(Schedule, KeepsUpdatesAndWhatTheyRead) {
  Program program = record_step(tiny_vit(1));
  const size_t before = program.nodes.size();
  program.outputs.clear();
  const Program kept = schedule(program);
  EXPECT_EQ(kept.nodes.size(), before - 1) << "the losses themselves are read by nobody";
  EXPECT_EQ(count_kinds(kept)["accumulate"], count_kinds(program)["accumulate"]);
  EXPECT_FALSE(count_kinds(kept).contains("cross_entropy"));
}

// A norm that two GEMMs read in the forward pass stays a node of its own, and so does its clone, though only
// one reads that.
TEST(Fuse, ACloneThatFewerReadIsFusedAsItsOriginal) {
  Builder b;
  const Dim d('D', 8);
  const ValueId x = b.input("x", {DType::kF32, {{'B', 2}, d}});
  const ValueId gamma = b.parameter("gamma", {DType::kF32, {d}}),
                beta = b.parameter("beta", {DType::kF32, {d}});
  const auto norm = [&] { return b.add<LayernormOp>({x, gamma, beta}, "norm", 1e-6); };
  const auto gemm = [&](ValueId of, const char* name) {
    return b.add<LinearOp>({of, b.parameter(std::string(name) + ".w", {DType::kF32, {{'F', 3}, d}})}, name);
  };
  const ValueId normed = norm();
  b.output("first", gemm(normed, "first"));
  b.output("second", gemm(normed, "second"));
  b.set_phase(Phase::kBackward);
  b.output("again", gemm(norm(), "first"));
  EXPECT_EQ(kinds(fuse(b.finish())),
            (std::vector<std::string>{"layernorm", "linear", "linear", "layernorm", "linear"}));
}

}  // namespace
}  // namespace vitrail
