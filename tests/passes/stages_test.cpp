// Stages of a small step: together they hold every node once, what one sends another receives, and turns are
// unrolled in the order of the table.
#include "passes/stages.h"

#include <gtest/gtest.h>

#include <map>

#include "ops/collective.h"
#include "ops/turn.h"
#include "passes/tiny_training.h"

namespace vitrail {
namespace {

constexpr int kBlocks = 6;

Program whole_step() {
  return record_step(tiny_vit(kBlocks), {.batch = 2, .dropout = 0.1});
}

Program stage(const Program& whole, const StageOptions& options, int stages, int number) {
  return stage_of(whole, options, {{1, 1, 1, stages}, number}, StageOf::kUpdate);
}

StageOptions options_of(PipelineSchedule schedule, int chunks, int64_t micros, std::vector<int> begins) {
  return {schedule, chunks, micros, std::move(begins)};
}

// Blocks beside which embedding and head cost little.
TEST(Stages, CostCutsEqualBlocksEvenly) {
  VitConfig model = tiny_vit(kBlocks);
  model.width = 32, model.mlp = 128;
  const Program whole = record_step(model);
  EXPECT_EQ(cut_by_cost(whole, 3), (std::vector<int>{2, 4}));
  EXPECT_EQ(cut_by_cost(whole, 6), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(cut_by_cost(whole, 1), std::vector<int>());
  EXPECT_THROW(cut_by_cost(whole, 7), Error);
}

// A head of as much work as several blocks leaves the last stage fewer of them.
TEST(Stages, TheHeadWeighsOnTheLastStage) {
  VitConfig model = tiny_vit(kBlocks);
  model.classes = 4000;
  EXPECT_GE(cut_by_cost(record_step(model), 2)[0], 4);
}

TEST(Stages, HoldEveryNodeOnce) {
  const Program whole = whole_step();
  std::map<std::string, int> names;
  for (const Node& node : whole.nodes) ++names[node.name + std::string(node.op->kind())];
  for (int s = 0; s < 3; ++s)
    for (const Node& node : stage(whole, options_of(PipelineSchedule::k1F1B, 1, 4, {1, 4}), 3, s).nodes)
      if (!as_collective(*node.op) && !is<TurnOp, WaitOp>(*node.op))
        --names[node.name + std::string(node.op->kind())];
  for (const auto& [name, count] : names) EXPECT_EQ(count, 0) << name;
}

// By sender, receiver and channel: the shapes in the order in which they travel.
using Traffic = std::map<std::tuple<int, int, int>, std::vector<std::string>>;

void add_traffic(const Program& program, int own, Traffic& sent, Traffic& received) {
  for (const Node& node : program.nodes) {
    const CollectiveOp* op = as_collective(*node.op);
    if (!op || !op->form().is_pair()) continue;
    const CollectiveOp::Form& form = op->form();
    const bool sends = form.kind == CollectiveKind::kSend;
    const Value& value = program.values[sends ? node.ins[0] : node.outs[0]];
    const std::string name = sends ? value.name : value.name.substr(0, value.name.rfind(".receive"));
    const auto way =
        sends ? std::tuple(own, form.peer, form.channel) : std::tuple(form.peer, own, form.channel);
    (sends ? sent : received)[way].push_back(name + " " + to_string(value.desc));
  }
}

TEST(Stages, WhatOneSendsAnotherReceivesInTheSameOrder) {
  const Program whole = whole_step();
  const std::pair<StageOptions, int> rows[] = {
      {options_of(PipelineSchedule::kGpipe, 1, 4, {2, 4}), 3},
      {options_of(PipelineSchedule::k1F1B, 1, 5, {1, 2}), 3},
      {options_of(PipelineSchedule::kInterleaved, 3, 4, {1, 2, 3, 4, 5}), 2},
      {options_of(PipelineSchedule::kInterleaved, 2, 6, {1, 2, 3, 4, 5}), 3}};
  for (const auto& [options, stages] : rows) {
    SCOPED_TRACE(enum_name(options.schedule));
    Traffic sent, received;
    for (int s = 0; s < stages; ++s) {
      const std::vector<PipelineTurn> turns =
          turns_of(pipeline_turns({options.schedule, stages, options.chunks, options.micros}), s);
      add_traffic(unrolled(stage(whole, options, stages, s), turns), s, sent, received);
    }
    EXPECT_EQ(sent, received);
    EXPECT_FALSE(sent.empty());
  }
}

TEST(Stages, TurnsAreUnrolledInTheOrderOfTheTable) {
  const Program whole = whole_step();
  const StageOptions options = options_of(PipelineSchedule::k1F1B, 1, 5, {2, 4});
  for (int s = 0; s < 3; ++s) {
    const std::vector<PipelineTurn> turns = turns_of(pipeline_turns({options.schedule, 3, 1, 5}), s);
    const Program program = unrolled(stage(whole, options, 3, s), turns);
    check_exchanges(program);
    size_t at = 0;
    for (const Node& node : program.nodes) {
      if (!is<TurnOp>(*node.op)) continue;
      const TurnOp::Form& form = dynamic_cast<const TurnOp&>(*node.op).form();
      ASSERT_LT(at, turns.size());
      EXPECT_EQ(form.micro, turns[at].micro);
      EXPECT_EQ(form.backward, turns[at].backward);
      ++at;
    }
    EXPECT_EQ(at, turns.size());
  }
}

}  // namespace
}  // namespace vitrail
