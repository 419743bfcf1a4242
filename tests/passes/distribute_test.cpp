// What the strategies make of a block, as stored text; the pins they are made of; tables of cuts; and the
// check that nothing touches what ranks are exchanging.
#include <gtest/gtest.h>

#include "ops/collective.h"
#include "ops/persistent.h"
#include "ops/pool_tokens.h"
#include "ops/residual_rows.h"
#include "passes/pins.h"
#include "passes/pipeline.h"
#include "stored_text.h"
#include "tiny_training.h"

namespace vitrail {
namespace {

struct Strategy {
  const char* name;
  std::array<int, kAxisCount> mesh;
  bool tokens = false;
  int zero = 0;
  const char* pass = "distribute";  // after which it is shown
};

Rewrites rewrites_of(const Strategy& s, int rank = 0) {
  Rewrites rewrites;
  rewrites.distribution = {.mesh = {s.mesh, rank}, .tokens_on_tp = s.tokens};
  rewrites.bucket_bytes = 1 << 20;
  rewrites.zero = s.zero;
  return rewrites;
}

// The micro program of three small blocks after a pass.
Program program_after(const Rewrites& rewrites, std::string_view wanted) {
  Recorded recorded = record_loss(tiny_vit(3), {.batch = 4});
  Program found;
  micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites,
                [&](std::string_view pass, const Program& program) {
                  if (pass == wanted) found = program;
                });
  return found;
}

// The pins and the nodes of the block in the middle.
std::string text_of(const Strategy& s) {
  const Rewrites rewrites = rewrites_of(s);
  const Program program = program_after(rewrites, s.pass);
  std::string text = to_string(pins_of(rewrites.distribution, s.zero));
  for (const Node& node : program.nodes)
    if (node.block == 1) text += to_string(node, program) + "\n";
  return text;
}

class DistributedBlock : public testing::TestWithParam<Strategy> {};

TEST_P(DistributedBlock, IsTheStoredText) {
  expect_stored(std::string("passes/golden/") + GetParam().name + ".txt", text_of(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Strategies, DistributedBlock,
                         testing::Values(Strategy{"dp", {2, 1, 1}},
                                         Strategy{"zero3", {2, 1, 1}, false, 3, "gather"},
                                         Strategy{"tp", {1, 2, 1}}, Strategy{"tp_sp", {1, 2, 1}, true},
                                         Strategy{"ulysses", {1, 1, 2}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Distribute, ReadsOneTokenWithoutGatheringTheStream) {
  for (const Strategy& s : {Strategy{"tp_sp", {1, 2, 1}, true}, Strategy{"ulysses", {1, 1, 2}}}) {
    for (const int rank : {0, 1}) {
      const Program program = program_after(rewrites_of(s, rank), "distribute");
      int selected = 0, made = 0;
      for (const Node& node : program.nodes) {
        if (is<SelectTokenOp>(*node.op)) {
          const Dim& tokens = program.values[node.ins[0]].desc.shape[1];
          EXPECT_LT(tokens.local, tokens.extent) << s.name;
          ++selected;
        }
        if (is<SelectTokenGradOp>(*node.op)) {
          const Dim& tokens = program.values[node.outs[0]].desc.shape[1];
          EXPECT_LT(tokens.local, tokens.extent) << s.name;
          ++made;
        }
      }
      EXPECT_EQ(selected, 1);
      EXPECT_EQ(made, 1);
    }
  }
}

TEST(Distribute, CutsWhereItsTablesSay) {
  Distribution how{.mesh = {{2, 2, 1}, 3},
                   .cuts = {{Axis::kData, 'B', {0, 3, 4}}, {Axis::kTensor, 'F', {0, 4, 16}}}};
  const Value images{"images", {DType::kF32, {{'B', 4}, {'C', 3}}}, ValueKind::kInput};
  const Value weight{"w", {DType::kF32, {{'F', 16}, {'D', 8}}}, ValueKind::kParameter, Category::kParameters};
  EXPECT_EQ(to_string(local_shape(images.desc.shape, pinned_layout(images, how), how)), "[B4(3+1) C3]");
  EXPECT_EQ(to_string(local_shape(weight.desc.shape, pinned_layout(weight, how), how)), "[F16(4+12) D8]");
  EXPECT_EQ(cuts_of({'B', 8}, Axis::kData, how), (std::vector<int64_t>{0, 4, 8}))
      << "a batch without a table";
  how.batch_unit = 3;
  EXPECT_EQ(cuts_of({'B', 9}, Axis::kData, how), (std::vector<int64_t>{0, 3, 9})) << "whole groups of three";
  how.batch_unit = 1;
  how.cuts[0].cuts = {0, 4};
  EXPECT_THROW(distribute({}, how), Error);
}

// A program that starts the sum of a bucket, with `between` before it is waited for.
Program exchanging(const OpPtr& between) {
  Program program;
  const TensorDesc flat{DType::kF32, {{'W', 32}}}, one{DType::kF32, {{'W', 16}}};
  program.values = {{"gradients/0", flat, ValueKind::kState, Category::kGradients},
                    {"grad/w", one, ValueKind::kState, Category::kGradients, "gradients/0"},
                    {"dw", one, ValueKind::kInput}};
  const CollectiveOp::Form form{CollectiveKind::kAllReduce, Axis::kData, {32}, {}, true, true};
  program.nodes.push_back(
      {.op = std::make_shared<CollectiveOp>(form), .ins = {0}, .outs = {}, .name = "sum"});
  if (between) program.nodes.push_back({.op = between, .ins = {1, 2}, .outs = {}, .name = "late"});
  program.nodes.push_back({.op = std::make_shared<WaitOp>(), .ins = {0}, .outs = {}, .name = "wait"});
  return program;
}

TEST(CheckExchanges, RefusesToTouchWhatIsBeingSummed) {
  EXPECT_NO_THROW(check_exchanges(exchanging(nullptr)));
  EXPECT_THROW(check_exchanges(exchanging(std::make_shared<AccumulateOp>())), Error);
  Program unfinished = exchanging(nullptr);
  unfinished.nodes.pop_back();
  EXPECT_THROW(check_exchanges(unfinished), Error);
  Program ordered = exchanging(std::make_shared<AccumulateOp>());
  std::swap(ordered.nodes[1], ordered.nodes[2]);
  EXPECT_NO_THROW(check_exchanges(ordered));
}

// What is gathered elsewhere may be read, and not written, while it travels.
TEST(CheckExchanges, RefusesToWriteWhatIsBeingRead) {
  Program program;
  const TensorDesc piece{DType::kF32, {{'W', 16}}}, whole{DType::kF32, {{'W', 32}}};
  program.values = {{"piece", piece, ValueKind::kState, Category::kGradients},
                    {"whole", whole, ValueKind::kState, Category::kGradients},
                    {"dw", piece, ValueKind::kInput}};
  const CollectiveOp::Form form{CollectiveKind::kAllGather, Axis::kData, {16, 16}, {}, false, true};
  program.nodes = {{.op = std::make_shared<CollectiveOp>(form), .ins = {0}, .outs = {1}, .name = "gather"},
                   {.op = std::make_shared<WaitOp>(), .ins = {0}, .outs = {}, .name = "wait"}};
  EXPECT_NO_THROW(check_exchanges(program));
  program.nodes.insert(program.nodes.begin() + 1,
                       {.op = std::make_shared<AccumulateOp>(), .ins = {0, 2}, .outs = {}, .name = "late"});
  EXPECT_THROW(check_exchanges(program), Error);
}

TEST(Fuse, MakesOnePassOfWhatFollowsAnExchange) {
  Rewrites rewrites = rewrites_of({"tp", {1, 2, 1}});
  VitConfig config = tiny_vit(3);
  config.layer_scale = true;
  config.norm_eps = 1e-4;
  const auto kinds = [&] { return count_kinds(inference_program(record_vit(config), rewrites)); };
  EXPECT_EQ(kinds().count("residual_rows"), 0u);
  rewrites.traits.residual_rows = true;
  EXPECT_EQ(kinds()["residual_rows"], 6);  // two a block; the norms go with the GEMMs behind them
  EXPECT_EQ(kinds().count("bias") + kinds().count("scale"), 1u) << "the positions alone";
  config.layer_scale = false;  // its gradient reads what it scales, which is then a value of its own
  Recorded recorded = record_loss(config, {.batch = 2});
  const Program micro = micro_program(std::move(recorded.program), {.seed = recorded.seed}, rewrites).program;
  int normed = 0;
  for (const Node& node : micro.nodes)
    if (is<ResidualRowsOp>(*node.op) && node.outs.size() == 2) {
      ++normed;
      EXPECT_NE(node.op->attributes().find("norm eps=0.0001"), std::string::npos) << node.op->attributes();
    }
  EXPECT_EQ(normed, 6) << "a norm whose result the backward half reads is of the same pass";
}

}  // namespace
}  // namespace vitrail
