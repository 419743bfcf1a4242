// How gradients are joined into buckets, and where the exchanges of parameters stand in a program.
#include "passes/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "graph/builder.h"
#include "graph/grad.h"
#include "ops/collective.h"
#include "ops/elementwise.h"
#include "ops/persistent.h"
#include "passes/pipeline.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

// Sums of so many elements each, in the order of a backward half, all partial along dp.
struct Sums {
  Program program;
  std::map<std::string, Layout> gradients;
};

Sums sums_of(const std::vector<int64_t>& sizes) {
  Sums sums;
  Builder b;
  Layout partial;
  partial[Axis::kData].kind = Placed::kPartial;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string parameter = "w" + std::to_string(i), name = gradient_name(parameter);
    const TensorDesc desc{DType::kF32, {{'W', sizes[i]}}};
    const ValueId sum = b.state(name, desc, Category::kGradients, parameter);
    b.add_all<AccumulateOp>({sum, b.input("d" + std::to_string(i), desc)}, name);
    sums.gradients[name] = partial;
  }
  sums.program = b.finish();
  return sums;
}

std::vector<int64_t> offsets_in(const Bucket& bucket) {
  std::vector<int64_t> offsets;
  for (const Bucket::Member& member : bucket.members) offsets.push_back(member.offset);
  return offsets;
}

TEST(Buckets, MembersLieAtMultiplesOf64Bytes) {
  const Sums sums = sums_of({5, 16, 17, 1});
  const std::vector<Bucket> buckets = make_buckets(sums.program, sums.gradients, 1 << 20);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(offsets_in(buckets[0]), (std::vector<int64_t>{0, 16, 32, 64}));
  EXPECT_EQ(buckets[0].elems, 80);
}

TEST(Buckets, OneIsFullWhenItsBytesAreReached) {
  const Sums sums = sums_of({32, 32, 32, 64, 16});
  std::vector<size_t> members;
  for (const Bucket& bucket : make_buckets(sums.program, sums.gradients, 64 * sizeof(float)))
    members.push_back(bucket.members.size());
  EXPECT_EQ(members, (std::vector<size_t>{2, 2, 1})) << "of 64, 96 and 16 elements";
}

Rewrites zero3() {
  Rewrites rewrites;
  rewrites.distribution.mesh = {{2, 1, 1}, 0};
  rewrites.bucket_bytes = 1 << 20;
  rewrites.zero = 3;
  return rewrites;
}

// What lies before the blocks comes last in the backward half, what lies behind them first.
TEST(Buckets, OfABlockEachWithTheHeadApartFromTheEmbedding) {
  Recorded recorded = record_loss(tiny_vit(2), {.batch = 4});
  const MicroProgram micro = micro_program(std::move(recorded.program), {.seed = recorded.seed}, zero3());
  std::map<std::string, std::string> bucket_of;
  for (const Bucket& bucket : micro.buckets)
    for (const Bucket::Member& member : bucket.members) bucket_of[member.parameter] = bucket.name;
  EXPECT_EQ(micro.buckets.size(), 4u);
  EXPECT_EQ(bucket_of.at("head.weight"), bucket_of.at("norm.weight"));
  EXPECT_EQ(bucket_of.at("pos_embed"), bucket_of.at("patch_embed.proj.weight"));
  EXPECT_NE(bucket_of.at("pos_embed"), bucket_of.at("head.weight"));
  EXPECT_EQ(bucket_of.at("blocks.0.norm1.weight"), bucket_of.at("blocks.0.mlp.fc2.weight"));
  EXPECT_NE(bucket_of.at("blocks.0.norm1.weight"), bucket_of.at("blocks.1.norm1.weight"));
}

TEST(Buckets, FrozenParametersAreGatheredByBlockToo) {
  Recorded recorded = record_loss(tiny_vit(2), {.batch = 4});
  const auto head = [](const std::string& name) { return name.starts_with("head."); };
  const MicroProgram micro =
      micro_program(std::move(recorded.program), {.seed = recorded.seed, .trained = head}, zero3());
  std::vector<std::string> first;
  for (const FlatGroup& group : micro.zero.groups())
    if (group.name.starts_with("frozen/")) first.push_back(group.members[0].name);
  EXPECT_EQ(first, (std::vector<std::string>{"patch_embed.proj.weight", "blocks.0.norm1.weight",
                                             "blocks.1.norm1.weight", "norm.weight"}));
}

struct Gathers {
  std::vector<std::string> forward, backward;  // the groups that are gathered, in the order of their waits
  std::vector<std::string> late;               // begin in the block that reads them
};

Gathers gathers_of(const Rewrites& rewrites, std::function<bool(const std::string& parameter)> trained = {}) {
  Recorded recorded = record_loss(tiny_vit(4), {.batch = 4});
  const DifferentiateOptions descent{.seed = recorded.seed, .trained = std::move(trained)};
  const Program program = micro_program(std::move(recorded.program), descent, rewrites).program;
  std::map<ValueId, size_t> started;  // the node of a gather, by what comes
  Gathers gathers;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    const CollectiveOp* op = as_collective(*node.op);
    EXPECT_TRUE(op || is<WaitOp>(*node.op) ||
                std::ranges::none_of(
                    node.ins, [&](ValueId id) { return program.values[id].kind == ValueKind::kParameter; }))
        << node.name << " reads a piece as if it were whole";
    if (op && op->form().kind == CollectiveKind::kAllGather) started[node.outs[0]] = i;
    if (!is<WaitOp>(*node.op) || !started.contains(node.ins[1])) continue;
    (node.phase == Phase::kForward ? gathers.forward : gathers.backward).push_back(node.name);
    const std::span between(&program.nodes[started[node.ins[1]]], &node);
    const bool other = std::ranges::any_of(between, [&](const Node& n) {
      return n.op->is_launched() && std::pair(n.block, n.phase) != std::pair(node.block, node.phase);
    });
    if (!other) gathers.late.push_back(node.name);
  }
  return gathers;
}

// The head and the last block are there when the backward half begins, which reads nothing of the embedding.
// So its first gather is ahead, too.
TEST(Buckets, WhatTheForwardHalfReadLastIsNotGatheredAgain) {
  const Gathers gathers = gathers_of(zero3());
  EXPECT_EQ(gathers.forward.size(), 6u) << "four blocks, the embedding, the head";
  EXPECT_EQ(gathers.backward.size(), 3u) << "of blocks 2, 1 and 0";
  EXPECT_EQ(gathers.late, std::vector<std::string>{gathers.forward[0]}) << "nothing is before the embedding";
}

// Without trained blocks the positions lie in the head's group, which is there from the first block to the
// last.
TEST(Buckets, WhatIsReadToTheEndIsNotGatheredAgain) {
  const Gathers gathers =
      gathers_of(zero3(), [](const auto& name) { return name.starts_with("head.") || name == "pos_embed"; });
  EXPECT_EQ(gathers.forward.size(), 7u) << "what is trained, four blocks, the patches, the last norm";
  EXPECT_EQ(gathers.backward.size(), 3u) << "of blocks 2, 1 and 0";
}

// In bf16 a block has two groups, its norms' and its GEMMs'.
TEST(Buckets, GathersBeginABlockAheadInEveryType) {
  Rewrites rewrites = zero3();
  rewrites.precision.compute = DType::kBF16;
  const Gathers gathers = gathers_of(rewrites);
  EXPECT_EQ(gathers.forward.size(), 12u);
  EXPECT_EQ(gathers.backward.size(), 6u);
  EXPECT_EQ(gathers.late, std::vector<std::string>(gathers.forward.begin(), gathers.forward.begin() + 2));
}

// A piece that lies on the host is on its way while the device computes, also across the halves, and has come
// when its gather starts. Of the first two nothing is computed before.
TEST(Buckets, PiecesOnTheHostComeAheadOfTheirGather) {
  Recorded recorded = record_loss(tiny_vit(3), {.batch = 4});
  Rewrites rewrites = zero3();
  rewrites.offload = rewrites.parameters_on_host = true;
  const Program program =
      micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites).program;
  std::map<ValueId, int> computed;  // nodes so far when an upload starts, by what the device gets
  std::vector<ValueId> come;
  int nodes = 0, gathers = 0;
  for (const Node& node : program.nodes) {
    nodes += node.op->is_launched();
    if (is<UploadOp>(*node.op)) computed[node.outs[0]] = nodes;
    if (is<WaitOp>(*node.op) && computed.contains(node.ins[1])) come.push_back(node.ins[1]);
    const CollectiveOp* op = as_collective(*node.op);
    if (!op || op->form().kind != CollectiveKind::kAllGather) continue;
    ASSERT_TRUE(!come.empty() && come.back() == node.ins[0]) << node.name << " reads what has not come";
    EXPECT_EQ(nodes > computed[node.ins[0]], ++gathers > 2) << node.name;
  }
  EXPECT_EQ(gathers, 7) << "five groups forward, of two blocks again";
  EXPECT_EQ(computed.size(), 7u);
}

// With one rank, which has all of every group, nothing is gathered.
TEST(Buckets, OneRankReadsWhatComesFromTheHost) {
  Recorded recorded = record_loss(tiny_vit(3), {.batch = 4});
  Rewrites rewrites = zero3();
  rewrites.distribution.mesh = {{1, 1, 1}, 0};
  rewrites.offload = rewrites.parameters_on_host = true;
  const Program program =
      micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites).program;
  EXPECT_EQ(std::ranges::count_if(program.nodes, [](const Node& n) { return is<UploadOp>(*n.op); }), 7);
  EXPECT_TRUE(std::ranges::none_of(program.nodes, [](const Node& n) { return as_collective(*n.op); }));
}

// In bf16 a block has two groups, its norms' and its GEMMs': both are on their way while the block before
// computes.
TEST(Buckets, UploadsComeABlockAheadInEveryType) {
  Recorded recorded = record_loss(tiny_vit(3), {.batch = 4});
  Rewrites rewrites = zero3();
  rewrites.distribution.mesh = {{1, 1, 1}, 0};
  rewrites.precision.compute = DType::kBF16;
  rewrites.offload = rewrites.parameters_on_host = true;
  const Program program =
      micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites).program;
  std::map<ValueId, size_t> started;  // the node of an upload, by what the device gets
  size_t ahead = 0, first = 0;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (is<UploadOp>(*node.op)) started[node.outs[0]] = i;
    if (!is<WaitOp>(*node.op) || !started.contains(node.ins[1])) continue;
    const std::span between(&program.nodes[started[node.ins[1]]], &node);
    const bool other = std::ranges::any_of(between, [&](const Node& n) {
      return n.op->is_launched() && std::pair(n.block, n.phase) != std::pair(node.block, node.phase);
    });
    (other ? ahead : first) += 1;
    EXPECT_TRUE(other || node.block == -1) << node.name << " starts in the block that reads it";
  }
  EXPECT_EQ(first, 2u) << "nothing is computed before the embedding";
  EXPECT_EQ(ahead + first, started.size());
  EXPECT_GT(ahead, 9u);
}

TEST(Buckets, AnUploadIsNotReadBeforeItsWait) {
  Builder b;
  const TensorDesc desc{DType::kF32, {{'W', 16}}};
  const ValueId host = b.state("w", desc, Category::kParameters);
  const ValueId own = b.add<UploadOp>({host}, "w.upload");
  b.output("y", b.add<AddOp>({own, own}, "y"));
  b.add_all<WaitOp>({host, own}, "w.uploaded");
  const Program program = b.finish();
  EXPECT_THROW(check_exchanges(program), Error);
}

}  // namespace
}  // namespace vitrail
