#include "passes/precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "passes/passes.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

PreciseProgram lowered(DType compute, DType residual, const VitRecordOptions& options = {}) {
  return precision(record_step(tiny_vit(2), options), {.compute = compute, .residual = residual});
}

const Node& find(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.nodes.begin(), program.nodes.end(),
                                  [&](const Node& node) { return node.name == name; });
  EXPECT_NE(found, program.nodes.end()) << name;
  return *found;
}

std::vector<std::string> dtypes(const Program& program, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (ValueId id : ids) names.emplace_back(to_string(program.values[id].desc.dtype));
  return names;
}

TEST(Precision, FullPrecisionChangesNothing) {
  const Program program = record_step(tiny_vit(1));
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const PreciseProgram same = precision(program, {.compute = dtype});
    EXPECT_EQ(to_string(same.program), to_string(program));
    EXPECT_TRUE(same.copies.empty());
  }
}

// A linear with its bias, forward and backward, as stored text.
TEST(Precision, LowersAProductAndKeepsItsSums) {
  Builder b;
  const Dim n('N', 4), d('D', 8), k('K', 3);
  const ValueId x = b.input("x", {DType::kF32, {n, d}});
  ValueId y = b.add<LinearOp>({x, b.parameter("w", {DType::kF32, {k, d}})}, "fc");
  y = b.add<BiasOp>({y, b.parameter("b", {DType::kF32, {k}})}, "fc.bias");
  b.output("loss", y);
  const ValueId seed = b.input("seed", b.desc(y));
  const PreciseProgram low = precision(differentiate(b.finish(), {.seed = seed}), {.compute = DType::kBF16});
  EXPECT_EQ(to_string(low.program),
            "input x f32[N4 D8]\n"
            "input seed f32[N4 K3]\n"
            "%10 bf16[N4 D8] = cast(x)  # x.bf16\n"
            "%2 bf16[N4 K3] = linear(%10, w@bf16)  # fc\n"
            "%4 bf16[N4 K3] = bias(%2, b)  # fc.bias\n"
            "%6 f32[K3] = sum_rows(seed)  # fc.bias.db\n"
            "accumulate(grad/b, %6)  # grad/b\n"
            "%12 bf16[N4 K3] = cast(seed)  # seed.bf16\n"
            "%8 f32[K3 D8] = linear_dw(%10, %12)  # fc.dw\n"
            "accumulate(grad/w, %8)  # grad/w\n"
            "%13 f32[N4 K3] = cast(%4)  # fc.bias.f32\n"
            "output loss = %13\n");
  EXPECT_EQ(low.copies, (std::vector<LowCopy>{{"w", "w@bf16", DType::kBF16}}));
}

// The types of each node's inputs and outputs, by its role.
TEST(Precision, GivesEveryRoleItsType) {
  using Types = std::vector<std::string>;
  const struct {
    const char* node;
    Types ins, outs;  // with bf16 compute and an f32 residual stream
  } rows[] = {
      {"patch_embed", {"bf16", "bf16"}, {"bf16"}},
      {"pos_embed", {"f32", "f32"}, {"f32"}},
      {"blocks.0.norm1", {"f32", "f32", "f32"}, {"f32"}},
      {"blocks.0.attn.qkv", {"bf16", "bf16"}, {"bf16"}},
      {"blocks.0.attn.qkv.bias", {"bf16", "f32"}, {"bf16"}},
      {"blocks.0.attn.softmax", {"bf16"}, {"bf16"}},
      {"blocks.0.mlp.gelu", {"bf16"}, {"bf16"}},
      {"blocks.0.mlp.residual", {"f32", "bf16"}, {"f32"}},
      {"loss", {"f32", "f32"}, {"f32"}},
      {"loss.dx", {"f32", "f32", "f32"}, {"f32"}},
      {"blocks.1.mlp.fc2.dx", {"bf16", "bf16"}, {"bf16"}},
      {"blocks.1.mlp.fc2.dw", {"bf16", "bf16"}, {"f32"}},
      {"blocks.1.mlp.gelu.dx", {"bf16", "bf16"}, {"bf16"}},
      {"blocks.1.attn.softmax.dx", {"bf16", "bf16"}, {"bf16"}},
      {"grad/blocks.0.attn.qkv.weight", {"f32", "f32"}, {}},
  };
  const PreciseProgram low = lowered(DType::kBF16, DType::kF32);
  for (const auto& row : rows) {
    const Node& node = find(low.program, row.node);
    EXPECT_EQ(dtypes(low.program, node.ins), row.ins) << row.node;
    EXPECT_EQ(dtypes(low.program, node.outs), row.outs) << row.node;
  }
}

TEST(Precision, TheResidualStreamIsAnOption) {
  for (DType residual : {DType::kF32, DType::kF16}) {
    const PreciseProgram low = lowered(DType::kF16, residual);
    for (const char* name : {"blocks.0.attn.residual", "blocks.1.mlp.residual", "norm"}) {
      const Node& node = find(low.program, name);
      EXPECT_EQ(low.program.values[node.outs[0]].desc.dtype, residual) << name;
    }
  }
}

TEST(Precision, MastersAndSumsStayFullAndOnlyGemmsReadCopies) {
  for (DType compute : {DType::kBF16, DType::kF16}) {
    const PreciseProgram low = lowered(compute, compute);
    std::set<std::string> copies;
    for (const auto& [master, copy, dtype] : low.copies) {
      EXPECT_EQ(dtype, compute);
      EXPECT_EQ(copy, master + "@" + to_string(compute));
      EXPECT_TRUE(master.ends_with("weight")) << master;
      EXPECT_EQ(master.find("norm"), std::string::npos) << master;
      EXPECT_TRUE(copies.insert(copy).second) << copy << " is made twice";
    }
    EXPECT_EQ(copies.size(), 2u * 4 + 2) << "patch, head and four GEMMs a block";
    for (const Value& value : low.program.values) {
      if (!value.persistent()) continue;
      EXPECT_EQ(value.desc.dtype, copies.contains(value.name) ? compute : DType::kF32) << value.name;
      if (copies.contains(value.name)) {
        EXPECT_EQ(value.category, Category::kParameters);
      }
    }
    for (const char* name : {"loss", "logits"})
      EXPECT_EQ(low.program.values[low.program.output(name)].desc.dtype, DType::kF32) << name;
  }
}

TEST(Precision, CastsEachValueOnce) {
  const PreciseProgram low = lowered(DType::kBF16, DType::kF32, {.dropout = 0.1, .drop_path = 0.2});
  std::set<std::pair<ValueId, DType>> seen;
  for (const Node& node : low.program.nodes) {
    if (!is<CastOp>(*node.op)) continue;
    const DType to = low.program.values[node.outs[0]].desc.dtype;
    EXPECT_NE(low.program.values[node.ins[0]].desc.dtype, to) << node.name;
    EXPECT_TRUE(seen.insert({node.ins[0], to}).second) << node.name;
  }
  EXPECT_EQ(schedule(low.program).nodes.size(), low.program.nodes.size()) << "a cast that nobody reads";
}

TEST(Precision, EveryVariantOfTheModelCanBeLowered) {
  VitConfig map = tiny_vit(1), full = tiny_vit(1);
  map.pool = Pool::kMap, map.class_token = false, map.pre_logits = true;
  full.qk_norm = full.layer_scale = true, full.distilled = true, full.registers = 2;
  full.pos_for_prefix = false;
  for (const VitConfig& config : {map, full})
    for (DType residual : {DType::kF32, DType::kBF16})
      EXPECT_NO_THROW(precision(record_step(config, {.dropout = 0.1, .drop_path = 0.1}),
                                {.compute = DType::kBF16, .residual = residual}));
}

TEST(Precision, ForInferenceStoresWeightsAndBiasesLowAndCopiesNothing) {
  for (const PosKind pos : {PosKind::kLearned, PosKind::kSinCos2d}) {
    VitConfig config = tiny_vit(1);
    config.pos = pos, config.pos_for_prefix = false;
    const PreciseProgram low = precision(
        record_vit(config, {}), {.compute = DType::kBF16, .residual = DType::kBF16, .keep_masters = false});
    EXPECT_TRUE(low.copies.empty());
    for (const Value& value : low.program.values) {
      if (value.name == "blocks.0.mlp.fc1.weight" || value.name == "blocks.0.mlp.fc1.bias") {
        EXPECT_EQ(value.desc.dtype, DType::kBF16) << value.name;
      }
      if (value.name == "blocks.0.norm1.weight") {
        EXPECT_EQ(value.desc.dtype, DType::kF32);
      }
    }
  }
}

// Positions come before the tokens, after them, or without them: the residual stream is wide wherever it
// begins.
TEST(Precision, TheStreamIsWideWithAndWithoutPrefixTokens) {
  void (*const changes[])(VitConfig&) = {
      [](VitConfig& c) { c.class_token = false, c.pool = Pool::kMean; },
      [](VitConfig& c) { c.pos_for_prefix = false; },
      [](VitConfig& c) { c.registers = 2, c.pos_for_prefix = false; },
      [](VitConfig&) {},
  };
  for (const auto change : changes) {
    VitConfig config = tiny_vit(2);
    change(config);
    const Program low =
        precision(record_step(config), {.compute = DType::kBF16, .residual = DType::kF32}).program;
    for (const char* name : {"blocks.0.attn.residual", "blocks.0.mlp.residual", "blocks.1.mlp.residual"}) {
      const Node& node = find(low, name);
      EXPECT_EQ(dtypes(low, node.ins), (std::vector<std::string>{"f32", "bf16"})) << name;
      EXPECT_EQ(dtypes(low, node.outs), std::vector<std::string>{"f32"}) << name;
    }
  }
}

// A gradient in f32, as from a loss, reaches an activation in the compute type.
TEST(Precision, TheGradientOfAnActivationIsOfItsType) {
  const OpPtr activations[] = {std::make_shared<TanhOp>(), std::make_shared<GeluOp>(true),
                               std::make_shared<GeluOp>(false)};
  for (const OpPtr& activation : activations) {
    Builder b;
    const Dim n('B', 4), d('D', 8), k('K', 3);
    const ValueId x = b.input("x", {DType::kF32, {n, d}});
    ValueId y = b.add<LinearOp>({x, b.parameter("w", {DType::kF32, {k, d}})}, "fc");
    y = b.add(activation, {y}, "act");
    const ValueId targets = b.input("targets", b.desc(y));
    const ValueId loss = b.add<CrossEntropyOp>({y, targets}, "loss", LossKind::kSoftmax);
    b.output("loss", loss);
    const ValueId seed = b.input("weights", b.desc(loss));
    const Program low =
        precision(differentiate(b.finish(), {.seed = seed}), {.compute = DType::kBF16}).program;
    EXPECT_EQ(dtypes(low, find(low, "loss.dx").outs), std::vector<std::string>{"f32"});
    EXPECT_EQ(dtypes(low, find(low, "act.dx").ins), (std::vector<std::string>{"bf16", "bf16"}));
  }
}

}  // namespace
}  // namespace vitrail
