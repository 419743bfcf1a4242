// Devices and backends by name, GEMMs as nodes, and tables of kernels.
#include "backend/registry.h"

#include <gtest/gtest.h>

#include "backend/gemm_node.h"
#include "backend/kernel_table.h"
#include "backend/sketch.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/layernorm.h"
#include "ops/linear.h"
#include "ops/patch_embed.h"
#include "ops/scale.h"

namespace vitrail {
namespace {

TEST(Registry, NamesOfDevices) {
  const struct {
    const char *name, *backend;
    int ordinal;
  } rows[] = {{"cpu", "cpu", 0}, {"cuda", "cuda", 0}, {"cuda:0", "cuda", 0}, {"cuda:1023", "cuda", 1023}};
  for (const auto& row : rows) {
    const DeviceName found = parse_device_name(row.name);
    EXPECT_STREQ(found.entry->name, row.backend) << row.name;
    EXPECT_EQ(found.ordinal, row.ordinal) << row.name;
  }
  for (const char* wrong :
       {"", "gpu", "ref", "cpu:0", "cuda:", "cuda:1024", "cuda:-1", "cuda:x", "cuda1", "CPU"})
    try {
      parse_device_name(wrong, "--device");
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(error.message(), strf("--device expects cpu or cuda[:i], not \"%s\"", wrong));
      EXPECT_EQ(error.hint(), "--device cpu, --device cuda, or --device cuda:1 for the second GPU");
    }
  try {
    find_entry("tpu");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "unknown backend 'tpu'");
    EXPECT_EQ(error.hint(), "one of cpu, cuda, ref");
  }
}

TEST(Registry, AHashTellsEveryFactOfATable) {
  const auto hash = [](const TuneKey& key, std::vector<std::string> kernels) {
    KernelTable table;
    table.set({key, std::move(kernels)});
    return table.hash();
  };
  const TuneKey key{.op = "linear", .m = 1, .n = 2, .k = 3, .threads = 4, .level = 5};
  const uint64_t whole = hash(key, {"a", "b"});
  EXPECT_EQ(hash(key, {"a", "b"}), whole);
  std::vector<TuneKey> others(6, key);
  others[0].op = "linear_dx", others[1].m = 9, others[2].n = 9, others[3].k = 9, others[4].threads = 9;
  others[5].level = 9;
  for (const TuneKey& other : others) EXPECT_NE(hash(other, {"a", "b"}), whole);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"b", "a"}, {"a"}, {"ab"}, {"a", "b", ""}})
    EXPECT_NE(hash(key, other), whole);
}

// FNV-1a of every text with a byte behind it that no text has.
TEST(Registry, AHashIsTheSameInEveryBuild) {
  uint64_t wanted = 0xcbf29ce484222325;
  for (const std::string text :
       {"linear", "1", "2", "3", "4", "5", "a", "", "linear_dx", "0", "0", "0", "0", "-1", "bc"}) {
    for (const unsigned char c : text) wanted = (wanted ^ c) * 0x100000001b3;
    wanted = (wanted ^ 0xff) * 0x100000001b3;
  }
  KernelTable table;
  EXPECT_EQ(table.hash(), 0u) << "of nothing";
  table.set({{.op = "linear_dx", .m = 0, .n = 0, .k = 0, .threads = 0, .level = -1}, {"bc"}});
  table.set({{.op = "linear", .m = 1, .n = 2, .k = 3, .threads = 4, .level = 5}, {"a", ""}});
  EXPECT_EQ(table.hash(), wanted) << "rows by their keys, whatever order they came in";
}

const Dim kFusedRows('B', 4), kFusedIn('D', 8), kFusedOut('F', 16);
const TensorDesc kFusedX{DType::kF32, {kFusedRows, kFusedIn}}, kFusedW{DType::kF32, {kFusedOut, kFusedIn}},
    kFusedRow{DType::kF32, {kFusedOut}}, kFusedNorm{DType::kF32, {kFusedIn}},
    kFusedResidual{DType::kF32, {kFusedRows, kFusedOut}};

template <typename T, typename... Args>
OpPtr make(Args... args) {
  return std::make_shared<T>(args...);
}
using Members = std::vector<FusedOp::Member>;
Sketch fused(Members members, std::vector<TensorDesc> ins, int kept = FusedOp::kNone) {
  return {make<FusedOp>(std::move(members), kept), std::move(ins)};
}

TEST(GemmNodes, PlacesOfEveryOperand) {
  const OpPtr all = make<FusedOp>(Members{{make<LayernormOp>(0.5), {0, 1, 2}},
                                          {make<LinearOp>(Arithmetic::kBF16), {made_by(0), 3}},
                                          {make<BiasOp>(), {made_by(1), 4}},
                                          {make<GeluOp>(true), {made_by(2)}},
                                          {make<ScaleOp>(), {made_by(3), 5}},
                                          {make<AddOp>(), {6, made_by(4)}}});
  const GemmNode p = parse_gemm(*all);
  EXPECT_EQ(p.unsupported, "");
  EXPECT_EQ((std::vector<int>{p.x, p.weight, p.gamma, p.beta, p.bias, p.scale, p.residual}),
            (std::vector<int>{0, 3, 1, 2, 4, 5, 6}));
  EXPECT_EQ(p.arithmetic, Arithmetic::kBF16);
  EXPECT_TRUE(p.norm && p.gelu && p.gelu->tanh_form());
  EXPECT_FALSE(p.is_patch_embed);
  const GemmNode plain = parse_gemm(LinearOp(Arithmetic::kInt8));
  EXPECT_EQ(plain.x, 0);
  EXPECT_EQ(plain.weight, 1);
  EXPECT_EQ(plain.bias, -1);
  EXPECT_EQ(plain.arithmetic, Arithmetic::kInt8);
  EXPECT_TRUE(parse_gemm(PatchEmbedOp()).is_patch_embed);
}

TEST(GemmNodes, WhatIsNoneIsSaid) {
  const FusedOp::Member gemm{make<LinearOp>(), {0, 1}}, bias{make<BiasOp>(), {made_by(0), 2}};
  const struct {
    Sketch node;
    const char* says;
  } rows[] = {
      {fused({gemm, bias}, {kFusedX, kFusedW, kFusedRow}), ""},
      {fused({gemm, {make<GeluOp>(false), {made_by(0)}}, {make<BiasOp>(), {made_by(1), 2}}},
             {kFusedX, kFusedW, kFusedRow}),
       "no place for bias around a GEMM"},
      {fused({gemm, {make<AddOp>(), {2, made_by(0)}}, {make<AddOp>(), {3, made_by(1)}}},
             {kFusedX, kFusedW, kFusedResidual, kFusedResidual}),
       "no place for add around a GEMM"},
      {fused({gemm, {make<ScaleOp>(), {made_by(0), 2}}, {make<GeluOp>(false), {made_by(1)}}},
             {kFusedX, kFusedW, kFusedRow}),
       "no place for gelu around a GEMM"},
      {fused({gemm, {make<TanhOp>(), {made_by(0)}}}, {kFusedX, kFusedW}), "no place for tanh around a GEMM"},
      {fused({{make<LayernormOp>(0.5), {0, 1, 2}}}, {kFusedX, kFusedNorm, kFusedNorm}), "no GEMM in it"},
      {fused({gemm, bias, {make<GeluOp>(false), {made_by(1)}}}, {kFusedX, kFusedW, kFusedRow}, 1),
       "makes one result"}};
  for (const auto& row : rows) EXPECT_EQ(gemm_unsupported(row.node.view()), row.says);
  const TensorDesc images{DType::kF32, {kFusedRows, {'C', 3}, {'Y', 8}, {'X', 8}}},
      patches{DType::kF32, {kFusedIn, {'C', 3}, {'P', 4}, {'Q', 4}}},
      tokens{DType::kF32, {kFusedRows, {'N', 4}, kFusedIn}}, table{DType::kF32, {{'N', 4}, kFusedIn}};
  const FusedOp::Member embed{make<PatchEmbedOp>(), {0, 1}};
  EXPECT_EQ(
      gemm_unsupported(fused({embed, {make<AddOp>(), {2, made_by(0)}}}, {images, patches, tokens}).view()),
      "a patch embedding takes bias, gelu and scale only");
  EXPECT_EQ(
      gemm_unsupported(fused({embed, {make<BiasOp>(), {made_by(0), 2}}}, {images, patches, table}).view()),
      "a bias or scale does not cover the GEMM's outputs");
  EXPECT_EQ(gemm_unsupported(
                fused({embed, {make<BiasOp>(), {made_by(0), 2}}}, {images, patches, kFusedNorm}).view()),
            "");
  const GemmNode node = parse_gemm(PatchEmbedOp());
  const MatmulExtents e = gemm_extents(node, images.shape, patches.shape);
  EXPECT_EQ((std::vector<int64_t>{e.m, e.n, e.k}), (std::vector<int64_t>{16, 8, 48}));
}

}  // namespace
}  // namespace vitrail
