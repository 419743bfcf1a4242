#include "passes/passes.h"

#include <gtest/gtest.h>

#include "models/vit.h"
#include "ops/fused.h"
#include "ops/linear.h"
#include "passes/pipeline.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

VitConfig tiny() {
  VitConfig c;
  c.image_height = c.image_width = 32;
  c.patch = 8;
  c.width = 48;
  c.depth = 2;
  c.heads = 3;
  c.mlp = 96;
  c.classes = 7;
  return c;
}

TEST(ReduceGemms, ChangesTheFourGemmsOfEveryBlockAndNoOther) {
  const Program exact = record_vit(tiny(), {}), reduced = gemm_precision(exact, Arithmetic::kInt8);
  std::vector<std::string> changed;
  ASSERT_EQ(reduced.nodes.size(), exact.nodes.size());
  for (const Node& node : reduced.nodes)
    if (const auto* linear = dynamic_cast<const LinearOp*>(node.op.get()))
      if (linear->arithmetic() == Arithmetic::kInt8) changed.push_back(node.name);
  EXPECT_EQ(changed, (std::vector<std::string>{"blocks.0.attn.qkv", "blocks.0.attn.proj", "blocks.0.mlp.fc1",
                                               "blocks.0.mlp.fc2", "blocks.1.attn.qkv", "blocks.1.attn.proj",
                                               "blocks.1.mlp.fc1", "blocks.1.mlp.fc2"}));
  EXPECT_NO_THROW(reduced.validate());
}

TEST(ReduceGemms, FusionTakesTheSameNeighboursAndKeepsTheArithmetic) {
  const Program exact = inference_after("fuse", record_vit(tiny(), {})),
                reduced = inference_after("fuse", record_vit(tiny(), {}), {.arithmetic = Arithmetic::kBF16});
  ASSERT_EQ(reduced.nodes.size(), exact.nodes.size());
  int told = 0;
  for (size_t i = 0; i < exact.nodes.size(); ++i) {
    EXPECT_EQ(reduced.nodes[i].op->kind(), exact.nodes[i].op->kind());
    told += reduced.nodes[i].op->attributes().find("arithmetic=bf16") != std::string::npos;
  }
  EXPECT_EQ(told, 8);
}

TEST(ReduceGemms, GradientsTakeWhatTheirArithmeticAllows) {
  const auto told = [](Arithmetic arithmetic, std::string_view kind) {
    int count = 0;
    for (const Node& node : record_step(tiny(), {}, nullptr, arithmetic).nodes)
      count += node.op->kind() == kind && arithmetic_of(*node.op) == arithmetic;
    return count;
  };
  for (const auto& [arithmetic, dx, dw] : {std::tuple{Arithmetic::kFp8, 8, 0},
                                           {Arithmetic::kTF32, 8, 8},
                                           {Arithmetic::kBF16, 0, 0},
                                           {Arithmetic::kInt8, 0, 0}}) {
    EXPECT_EQ(told(arithmetic, "linear"), 8) << enum_name(arithmetic);
    EXPECT_EQ(told(arithmetic, "linear_dx"), dx) << enum_name(arithmetic);
    EXPECT_EQ(told(arithmetic, "linear_dw"), dw) << enum_name(arithmetic);
  }
}

TEST(ReduceGemms, ProductsOfOneArithmeticMayFormChains) {
  const RewriteTraits options{
      .norms = nullptr, .chains = [](const Op& gemm) { return arithmetic_of(gemm) == Arithmetic::kFp8; }};
  const auto kinds = [&](Arithmetic arithmetic) {
    std::map<std::string, int> counts;
    const Rewrites rewrites{.arithmetic = arithmetic, .traits = options};
    for (const Node& node : inference_after("fuse", record_vit(tiny(), {}), rewrites).nodes)
      ++counts[std::string(node.op->kind())];
    return counts;
  };
  EXPECT_EQ(kinds(Arithmetic::kFp8)["linear+bias+gelu+linear+bias+add"], 2);
  EXPECT_EQ(kinds(Arithmetic::kExact)["linear+bias+gelu"], 2);
  const Program training =
      step_after("fuse", tiny(), {.arithmetic = Arithmetic::kFp8, .join = false, .traits = options});
  for (const Node& node : training.nodes)  // the gradient of fc2's weight reads what the gelu makes
    EXPECT_EQ(node.op->kind().find("gelu+linear"), std::string_view::npos);
}

TEST(ReduceGemms, SmallGemmsStayExact) {
  VitRecordOptions options;
  options.batch = 2;
  const auto rounded = [&](int64_t rows, int64_t width = 0) {
    std::vector<std::string> names;
    const LeastGemm least{rows, width};
    for (const Node& node : gemm_precision(record_vit(tiny(), options), Arithmetic::kFp8, least).nodes)
      if (arithmetic_of(*node.op) == Arithmetic::kFp8) names.push_back(node.name);
    return names;
  };
  // Two images of 17 tokens; the last block has two rows after its attention, of the class tokens.
  EXPECT_EQ(rounded(2).size(), 8u);
  EXPECT_EQ(rounded(34),
            (std::vector<std::string>{"blocks.0.attn.qkv", "blocks.0.attn.proj", "blocks.0.mlp.fc1",
                                      "blocks.0.mlp.fc2", "blocks.1.attn.qkv"}));
  EXPECT_TRUE(rounded(35).empty());
  const int64_t width = tiny().width;
  EXPECT_EQ(rounded(2, width).size(), 8u);
  EXPECT_TRUE(rounded(2, width + 1).empty()) << "each GEMM has so many inputs or outputs";
}

TEST(ReduceGemms, AProgramOfFewRowsIsThatOf16Bits) {
  const auto program = [](Arithmetic arithmetic, int64_t fp8_rows) {
    Rewrites rewrites{.arithmetic = arithmetic};
    rewrites.traits.fp8_rows = fp8_rows;
    return to_string(inference_program(record_vit(tiny(), {}), rewrites));
  };
  EXPECT_EQ(program(Arithmetic::kFp8, 18), program(Arithmetic::kExact, 18));
  EXPECT_NE(program(Arithmetic::kFp8, 17), program(Arithmetic::kExact, 17));
  EXPECT_NE(program(Arithmetic::kInt8, 18), program(Arithmetic::kExact, 18)) << "the rule is fp8's";
}

// Narrow GEMMs gain from fp8 where weights were rounded once, at load.
TEST(ReduceGemms, OnlyATrainingProgramAsksForAWidth) {
  Rewrites rewrites{.arithmetic = Arithmetic::kFp8};
  const auto trained = [&] {
    Recorded recorded = record_loss(tiny(), {});
    return to_string(micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites).program);
  };
  const auto applied = [&] { return to_string(inference_program(record_vit(tiny(), {}), rewrites)); };
  rewrites.traits.fp8_trained_width = tiny().width;
  const std::string in_fp8 = trained(), answer = applied();
  rewrites.traits.fp8_trained_width = tiny().width + 1;
  const std::string wide = trained();
  EXPECT_EQ(applied(), answer);
  EXPECT_NE(wide, in_fp8);
  rewrites.arithmetic = Arithmetic::kExact;
  EXPECT_EQ(wide, trained());
}

TEST(ReduceGemms, AdaptersStayExact) {
  VitRecordOptions options;
  options.lora.rank = 4;
  int adapters = 0;
  for (const Node& node : gemm_precision(record_vit(tiny(), options), Arithmetic::kFp8).nodes)
    if (is<LinearOp>(*node.op) && node.name.find("lora") != std::string::npos) {
      ++adapters;
      EXPECT_EQ(arithmetic_of(*node.op), Arithmetic::kExact) << node.name;
    }
  EXPECT_GT(adapters, 0);
}

}  // namespace
}  // namespace vitrail
