#include "passes/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/vit_params.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

const Dim kB('B', 2), kD('D', 4), kF('F', 6), kK('K', 3);

std::set<std::string> gradient_sums(const Program& program) {
  std::set<std::string> names;
  for (const Value& value : program.values)
    if (value.kind == ValueKind::kState) names.insert(value.name);
  return names;
}

std::vector<std::string> backward_names(const Program& program) {
  std::vector<std::string> names;
  for (const Node& node : program.nodes)
    if (node.phase == Phase::kBackward) names.push_back(node.name);
  return names;
}

Recorded record_mlp() {
  Builder b;
  const auto parameter = [&](const char* name, Shape shape) {
    return b.parameter(name, {DType::kF32, std::move(shape)});
  };
  ValueId x = b.input("x", {DType::kF32, {kB, kD}});
  x = b.add<LinearOp>({x, parameter("fc.weight", {kF, kD})}, "fc");
  x = b.add<BiasOp>({x, parameter("fc.bias", {kF})}, "fc.bias");
  x = b.add<GeluOp>({x}, "gelu", false);
  x = b.add<LinearOp>({x, parameter("head.weight", {kK, kF})}, "head");
  const ValueId targets = b.input("targets", b.desc(x));
  const ValueId loss = b.add<CrossEntropyOp>({x, targets}, "loss", LossKind::kSoftmax);
  b.output("loss", loss);
  const ValueId seed = b.input("weights", b.desc(loss));
  return {b.finish(), seed};
}

Program differentiated_mlp(Trained trained) {
  Recorded mlp = record_mlp();
  return differentiate(std::move(mlp.program), {.seed = mlp.seed, .trained = std::move(trained)});
}

// The whole program, as stored text, shows what the pass did.
TEST(Differentiate, RecordsEveryGradientOnce) {
  EXPECT_EQ(to_string(differentiated_mlp(nullptr)),
            "input x f32[B2 D4]\n"
            "input targets f32[B2 K3]\n"
            "input weights f32[B2]\n"
            "%2 f32[B2 F6] = linear(x, fc.weight)  # fc\n"
            "%4 f32[B2 F6] = bias(%2, fc.bias)  # fc.bias\n"
            "%5 f32[B2 F6] = gelu{erf}(%4)  # gelu\n"
            "%7 f32[B2 K3] = linear(%5, head.weight)  # head\n"
            "%9 f32[B2] = cross_entropy{softmax}(%7, targets)  # loss\n"
            "%11 f32[B2 K3] = cross_entropy_grad{softmax}(%7, targets, weights)  # loss.dx\n"
            "%12 f32[B2 F6] = linear_dx(%11, head.weight)  # head.dx\n"
            "%13 f32[K3 F6] = linear_dw(%5, %11)  # head.dw\n"
            "accumulate(grad/head.weight, %13)  # grad/head.weight\n"
            "%15 f32[B2 F6] = gelu_grad{erf}(%4, %12)  # gelu.dx\n"
            "%16 f32[F6] = sum_rows(%15)  # fc.bias.db\n"
            "accumulate(grad/fc.bias, %16)  # grad/fc.bias\n"
            "%18 f32[F6 D4] = linear_dw(x, %15)  # fc.dw\n"
            "accumulate(grad/fc.weight, %18)  # grad/fc.weight\n"
            "output loss = %9\n");
}

TEST(Differentiate, RecordsNothingForFrozenParts) {
  const struct {
    const char* trained;
    std::vector<std::string> backward;
  } rows[] = {
      {"head.weight", {"loss.dx", "head.dw", "grad/head.weight"}},
      {"fc.bias", {"loss.dx", "head.dx", "gelu.dx", "fc.bias.db", "grad/fc.bias"}},
      {"fc.weight", {"loss.dx", "head.dx", "gelu.dx", "fc.dw", "grad/fc.weight"}},
  };
  for (const auto& row : rows) {
    const Program program = differentiated_mlp([&](const std::string& name) { return name == row.trained; });
    EXPECT_EQ(backward_names(program), row.backward);
    EXPECT_EQ(gradient_sums(program), std::set<std::string>{gradient_name(row.trained)});
  }
}

TEST(Differentiate, BiasesAloneNeedNoWeightGradient) {
  const Program program =
      record_step(tiny_vit(2), {}, [](const std::string& name) { return name.ends_with("bias"); });
  const auto kinds = count_kinds(program);
  EXPECT_FALSE(kinds.contains("linear_dw"));
  EXPECT_FALSE(kinds.contains("patch_embed_dw"));
  for (const std::string& name : gradient_sums(program)) EXPECT_TRUE(name.ends_with("bias")) << name;
  EXPECT_EQ(gradient_sums(program).size(), 2u * 6 + 3);
}

TEST(Differentiate, AFrozenBlockAtTheFrontIsNeverEnteredGoingBack) {
  const Program program = record_step(tiny_vit(3), {}, [](const std::string& name) {
    return name.starts_with("blocks.2.") || name.starts_with("head.");
  });
  for (const std::string& name : backward_names(program)) {
    EXPECT_EQ(name.find("blocks.0"), std::string::npos) << name;
    EXPECT_EQ(name.find("blocks.1"), std::string::npos) << name;
  }
  EXPECT_EQ(count_kinds(program)["attention_grad"], 1);
}

TEST(Differentiate, AFrozenBlockInTheMiddleIsPassedThroughWithoutSums) {
  const Program program =
      record_step(tiny_vit(2), {}, [](const std::string& name) { return !name.starts_with("blocks.1."); });
  for (const std::string& name : gradient_sums(program))
    EXPECT_EQ(name.find("blocks.1"), std::string::npos) << name;
  for (const Node& node : program.nodes) {
    if (!is<LayernormGradOp>(*node.op)) continue;
    EXPECT_EQ(node.outs.size(), node.name.starts_with("blocks.1") ? 1u : 3u) << node.name;
  }
  EXPECT_EQ(count_kinds(program)["attention_grad"], 2);
}

TEST(Differentiate, EveryParameterCanBeTheOnlyOneThatLearns) {
  VitConfig config = tiny_vit(1);
  config.qk_norm = config.layer_scale = config.pre_logits = true;
  config.registers = 2;
  for (const ParamSpec& spec : vit_params(config)) {
    const Program program =
        record_step(config, {}, [&](const std::string& name) { return name == spec.name; });
    EXPECT_EQ(gradient_sums(program), std::set<std::string>{gradient_name(spec.name)});
    EXPECT_EQ(count_kinds(program)["accumulate"], 1) << spec.name;
  }
}

TEST(Differentiate, SumsTheGradientsOfASharedParameterAndOfAValueReadTwice) {
  Builder b;
  const ValueId w = b.parameter("w", {DType::kF32, {kB, kD}});
  const ValueId y = b.add<TanhOp>({w}, "y");
  const ValueId z = b.add<AddOp>({b.add<TanhOp>({y}, "a"), y}, "z");
  b.output("loss", b.add<AddOp>({z, w}, "loss"));
  const ValueId seed = b.input("seed", b.desc(z));
  const Program program = differentiate(b.finish(), {.seed = seed});
  EXPECT_EQ(gradient_sums(program), std::set<std::string>{"grad/w"});
  const auto kinds = count_kinds(program);
  EXPECT_EQ(kinds.at("accumulate"), 2) << "once for each reader of w";
  EXPECT_EQ(kinds.at("add"), 3) << "the two of the program and the one that joins y's gradients";
}

TEST(Differentiate, SumsAreInFullWhateverTheParametersType) {
  Builder b;
  const ValueId x = b.input("x", {DType::kBF16, {{'B', 2}, {'D', 4}}});
  const ValueId w = b.parameter("w", {DType::kBF16, {{'F', 6}, {'D', 4}}});
  b.output("loss", b.add<LinearOp>({x, w}, "loss"));
  const ValueId seed = b.input("seed", {DType::kBF16, {{'B', 2}, {'F', 6}}});
  const Program program = differentiate(b.finish(), {.seed = seed});
  const auto sum = std::find_if(program.values.begin(), program.values.end(),
                                [](const Value& value) { return value.name == gradient_name("w"); });
  ASSERT_NE(sum, program.values.end());
  EXPECT_EQ(sum->desc.dtype, DType::kF32);
}

TEST(Differentiate, RefusesALossThatNothingTrainedReaches) {
  EXPECT_THROW(differentiated_mlp([](const std::string&) { return false; }), Error);
}

TEST(Differentiate, SaysWhichOpHasNoGradient) {
  Builder b;
  const Dim t('T', 3), h('H', 2), e('E', 2);
  const ValueId qkv = b.parameter("qkv", {DType::kF32, {kB, {'N', 3}, t, h, e}});
  b.output("loss", b.add<AttentionProbsOp>({qkv}, "probs"));
  const ValueId seed = b.input("seed", {DType::kF32, {kB}});
  try {
    differentiate(b.finish(), {.seed = seed});
    FAIL() << "attention weights take no gradient";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("attention_probs has no gradient"), std::string::npos)
        << error.what();
  }
}

TEST(Differentiate, EveryNodeKnowsItsHalfAndItsLine) {
  const Program program = record_step(tiny_vit(1));
  bool backward = false;
  for (const Node& node : program.nodes) {
    backward = backward || node.phase == Phase::kBackward;
    EXPECT_EQ(node.phase == Phase::kBackward, backward) << node.name;
    EXPECT_GT(node.where.line, 0) << node.name;
  }
  EXPECT_TRUE(backward);
}

}  // namespace
}  // namespace vitrail
