#include "passes/passes.h"

#include <gtest/gtest.h>

#include <set>

#include "tiny_training.h"

namespace vitrail {
namespace {

// Returns the values that the forward pass writes and the backward pass reads.
std::set<std::string> kept(const Program& program) {
  std::set<ValueId> forward;
  std::set<std::string> names;
  for (const Node& node : program.nodes) {
    if (node.phase == Phase::kForward) forward.insert(node.outs.begin(), node.outs.end());
    for (ValueId id : node.ins)
      if (node.phase == Phase::kBackward && forward.contains(id)) names.insert(program.values[id].name);
  }
  return names;
}

Program recomputed(int64_t depth, const RecomputeOptions& options) {
  return recompute(record_step(tiny_vit(depth), {.dropout = 0.1, .drop_path = 0.2}), options);
}

TEST(Recompute, NoneChangesNothing) {
  const Program program = record_step(tiny_vit(2));
  EXPECT_EQ(to_string(recompute(program, {})), to_string(program));
}

TEST(Recompute, KeepsWhatCrossesASegment) {
  const Program program = record_step(tiny_vit(4));
  const auto names = [&](const RecomputeOptions& options) {
    std::set<std::string> result;
    for (const std::string& name : kept(recompute(program, options)))
      if (name.starts_with("blocks.")) result.insert(name);
    return result;
  };
  // Only a block's input is kept, which the block before it wrote. Its middle residual is computed again.
  EXPECT_EQ(names({.level = Recompute::kBlock}),
            (std::set<std::string>{"blocks.0.mlp.residual", "blocks.1.mlp.residual", "blocks.2.mlp.residual",
                                   "blocks.3.mlp.residual"}));
  EXPECT_EQ(names({.level = Recompute::kBlock, .every = 2}),
            (std::set<std::string>{"blocks.1.mlp.residual", "blocks.3.mlp.residual"}));
  for (const std::string& name : names({.level = Recompute::kMlp}))
    EXPECT_TRUE(name.find(".mlp.") == std::string::npos || name.ends_with("mlp.residual")) << name;
}

TEST(Recompute, ClonesKeepTheNameAndOpOfTheirNode) {
  for (const RecomputeOptions& options : {RecomputeOptions{Recompute::kNorms},
                                          {Recompute::kCheap},
                                          {Recompute::kMlp},
                                          {Recompute::kBlock},
                                          {Recompute::kBlock, 3}}) {
    const Program plain = recomputed(3, {}), program = recomputed(3, options);
    std::map<std::string, const Op*> forward;
    size_t clones = 0;
    for (const Node& node : program.nodes) {
      if (node.phase == Phase::kForward) forward[node.name] = node.op.get();
      const auto original = forward.find(node.name);
      if (node.phase != Phase::kBackward || original == forward.end()) continue;
      EXPECT_EQ(node.op.get(), original->second) << node.name;
      ++clones;
    }
    EXPECT_EQ(program.nodes.size(), plain.nodes.size() + clones);
    EXPECT_GT(clones, 0u);
    EXPECT_EQ(schedule(program).nodes.size(), program.nodes.size()) << "a clone that nobody reads";
  }
}

TEST(Recompute, LeavesTheForwardHalfAsItIs) {
  const Program plain = recomputed(2, {}), program = recomputed(2, {.level = Recompute::kBlock});
  for (size_t i = 0; i < plain.nodes.size() && plain.nodes[i].phase == Phase::kForward; ++i)
    EXPECT_EQ(to_string(plain.nodes[i], plain), to_string(program.nodes[i], program));
  EXPECT_EQ(count_kinds(program)["attention"], 2 * count_kinds(plain)["attention"]);
  EXPECT_EQ(count_kinds(program)["attention_grad"], count_kinds(plain)["attention_grad"]);
}

TEST(Recompute, OfTheMlpNothingElseIsComputedAgain) {
  auto plain = count_kinds(recomputed(2, {})),
       program = count_kinds(recomputed(2, {.level = Recompute::kMlp}));
  EXPECT_EQ(program["gelu"], 2 * plain["gelu"]);
  EXPECT_EQ(program["attention"], plain["attention"]);
  EXPECT_EQ(program["layernorm"], plain["layernorm"]);
}

TEST(Recompute, CheapComputesNormsActivationsAndMasksAgainAndNothingElse) {
  auto plain = count_kinds(recomputed(2, {})),
       program = count_kinds(recomputed(2, {.level = Recompute::kCheap}));
  EXPECT_EQ(program["gelu"], 2 * plain["gelu"]);
  EXPECT_GE(program["layernorm"], plain["layernorm"] + 4);  // two a block
  EXPECT_GE(program["dropout"], plain["dropout"] + 2);      // behind each gelu
  for (const char* kind : {"gelu", "layernorm", "dropout"}) plain.erase(kind), program.erase(kind);
  EXPECT_EQ(program, plain);
  const Program bare = recompute(record_step(tiny_vit(2)), {.level = Recompute::kCheap});
  for (const std::string& name : kept(bare))
    EXPECT_FALSE(name.ends_with("mlp.gelu") || name.ends_with(".norm1") || name.ends_with(".norm2")) << name;
}

TEST(Recompute, CheapComputesOtherActivationsAgainToo) {
  for (const ActKind activation : {ActKind::kSilu, ActKind::kQuickGelu, ActKind::kRelu}) {
    VitConfig config = tiny_vit(2);
    config.activation = activation;
    const Program plain = record_step(config), program = recompute(plain, {.level = Recompute::kCheap});
    EXPECT_EQ(count_kinds(plain)["activate"], 2) << enum_name(activation);
    EXPECT_EQ(count_kinds(program)["activate"], 4) << enum_name(activation);
    EXPECT_EQ(count_kinds(recompute(plain, {.level = Recompute::kNorms}))["activate"], 2);
  }
}

TEST(Recompute, NormsComputesNothingElseAgain) {
  auto plain = count_kinds(recomputed(2, {})),
       program = count_kinds(recomputed(2, {.level = Recompute::kNorms}));
  EXPECT_GE(program["layernorm"], plain["layernorm"] + 4);
  plain.erase("layernorm"), program.erase("layernorm");
  EXPECT_EQ(program, plain);
}

// GEMMs read norms of a wide stream through casts, which are made again with them.
TEST(Recompute, NormsOfAWideStreamAreNotKeptByTheirCasts) {
  for (const DType residual : {DType::kF32, DType::kBF16}) {
    const Program program = step_after("recompute", tiny_vit(2),
                                       {.precision = {.compute = DType::kBF16, .residual = residual},
                                        .recompute = {.level = Recompute::kNorms}});
    for (const std::string& name : kept(program))
      EXPECT_EQ(name.find(".norm1"), name.find(".norm2")) << name << ", stream of " << to_string(residual);
  }
}

// A norm whose input nothing else keeps saves nothing by being computed again.
TEST(Recompute, CheapLeavesWhatHasNoKeptInput) {
  const auto weights_only = [](const std::string& name) { return name.ends_with("fc2.weight"); };
  const Program frozen = record_step(tiny_vit(1), {}, weights_only);
  EXPECT_EQ(count_kinds(recompute(frozen, {.level = Recompute::kCheap}))["gelu"],
            count_kinds(frozen)["gelu"]);
}

TEST(Recompute, WorksOnLoweredProgramsAndOnFrozenParts) {
  const auto head_only = [](const std::string& name) { return name.starts_with("head."); };
  const Program probe = record_step(tiny_vit(2), {}, head_only);
  EXPECT_EQ(to_string(recompute(probe, {.level = Recompute::kBlock})), to_string(probe))
      << "nothing goes back through the blocks";
  const Program low = step_after("precision", tiny_vit(2),
                                 {.precision = {.compute = DType::kBF16, .residual = DType::kBF16}});
  EXPECT_LT(kept(recompute(low, {.level = Recompute::kBlock})).size(), kept(low).size());
}

}  // namespace
}  // namespace vitrail
