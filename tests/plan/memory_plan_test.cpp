#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backend/cpu/kernels.h"
#include "models/vit.h"
#include "passes/fuse.h"
#include "passes/schedule.h"
#include "plan/kernel_choice.h"

namespace vitrail {
namespace {

VitConfig small(int64_t depth, int64_t width, int64_t image) {
  VitConfig c;
  c.image_height = c.image_width = image;
  c.patch = 8;
  c.width = width;
  c.depth = depth;
  c.heads = 4;
  c.mlp = 4 * width;
  c.classes = 10;
  return c;
}

ExecutionPlan plan_of(const VitConfig& config, int64_t batch, bool fused, const char* backend) {
  Program program = record_vit(config, {.batch = batch});
  if (fused) program = fuse(program);
  return plan_execution(schedule(program), find_backend(backend), cpu_device(2));
}

using Bytes = std::vector<int>;  // which value or scratch wrote each byte last

void mark(Bytes& arena, const Placement& p, int owner) {
  ASSERT_LE(p.offset + p.bytes, arena.size());
  std::fill_n(arena.begin() + static_cast<std::ptrdiff_t>(p.offset), p.bytes, owner);
}

void expect_owner(const Bytes& arena, const Placement& p, int owner, const std::string& what) {
  for (size_t i = 0; i < p.bytes; ++i) ASSERT_EQ(arena[p.offset + i], owner) << what << " was overwritten";
}

// Plays the program on a map of the arena: whatever a node reads must still be what was written for it, and
// neither its scratch nor its output may lie over an input that is read while it runs (but the one it
// declares it overwrites).
void expect_sound(const ExecutionPlan& plan) {
  const Program& program = plan.program;
  Bytes arena(plan.memory.transient_bytes, -1);
  const auto transient = [&](ValueId id) { return program.values[id].kind != ValueKind::kParameter; };
  for (size_t id = 0; id < program.values.size(); ++id)
    if (program.values[id].kind == ValueKind::kInput)
      mark(arena, plan.memory.values[id], static_cast<int>(id));
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    mark(arena, plan.memory.scratch[i], -2);
    const int overwritten = node.op->in_place_input();
    const bool in_place =
        overwritten >= 0 && transient(node.ins[overwritten]) &&
        plan.memory.values[node.ins[overwritten]].offset == plan.memory.values[node.outs[0]].offset;
    if (!in_place) mark(arena, plan.memory.values[node.outs[0]], node.outs[0]);
    for (ValueId id : node.ins)
      if (transient(id))
        expect_owner(arena, plan.memory.values[id], id, node.name + " reads " + program.values[id].name);
    if (in_place) mark(arena, plan.memory.values[node.outs[0]], node.outs[0]);
    expect_owner(arena, plan.memory.values[node.outs[0]], node.outs[0], node.name);
  }
  for (const Output& out : program.outputs)
    expect_owner(arena, plan.memory.values[out.value], out.value, out.name);
}

TEST(MemoryPlan, ValuesThatLiveTogetherNeverOverlap) {
  for (const char* backend : {"ref", "cpu"})
    for (bool fused : {false, true})
      for (int64_t batch : {1, 3}) expect_sound(plan_of(small(3, 32, 40), batch, fused, backend));
}

TEST(MemoryPlan, ReusesMemoryAcrossBlocks) {
  const size_t shallow = plan_of(small(2, 64, 32), 1, true, "cpu").memory.transient_bytes;
  EXPECT_EQ(plan_of(small(12, 64, 32), 1, true, "cpu").memory.transient_bytes, shallow);
}

TEST(MemoryPlan, PeakIsAtLeastTheLowerBoundAndCloseToIt) {
  for (int64_t image : {32, 64, 96}) {
    const MemoryPlan memory = plan_of(small(4, 64, image), 2, true, "cpu").memory;
    EXPECT_GE(memory.transient_bytes, memory.lower_bound_bytes);
    EXPECT_LE(memory.transient_bytes, memory.lower_bound_bytes + memory.lower_bound_bytes / 5);
  }
}

TEST(MemoryPlan, CategoriesSumToThePeakLessFragmentation) {
  const MemoryPlan memory = plan_of(small(4, 64, 64), 2, true, "cpu").memory;
  const size_t sum = std::accumulate(memory.by_category.begin(), memory.by_category.end(), size_t{0});
  EXPECT_EQ(sum + memory.fragmentation_bytes(), memory.peak_bytes());
}

TEST(MemoryPlan, OutputsKeepTheirBytesToTheEnd) {
  const ExecutionPlan plan = plan_of(small(2, 32, 32), 1, true, "cpu");
  const Placement& logits = plan.memory.values[plan.program.output("logits")];
  EXPECT_EQ(logits.last, static_cast<int>(plan.program.nodes.size()));
}

TEST(KernelChoice, SaysWhyAFasterKernelDeclined) {
  const ExecutionPlan plan = plan_of(small(1, 32, 32), 1, false, "cpu");
  // A plain program shares no weights: every product is packed, and the reference stands behind what has no
  // kernel.
  for (size_t i = 0; i < plan.program.nodes.size(); ++i) {
    if (plan.program.nodes[i].op->kind() != "linear") continue;
    EXPECT_STREQ(plan.choices[i].launches[0].kernel->name, "packed gemm");
  }
  Program half = record_vit(small(1, 32, 32), {.dtype = DType::kF16});
  const ExecutionPlan slow = plan_execution(half, cpu_backend(), cpu_device(1));
  for (size_t i = 0; i < slow.program.nodes.size(); ++i) {
    EXPECT_STREQ(slow.choices[i].launches[0].kernel->name, "ref");
    if (slow.program.nodes[i].op->kind() == "linear") {
      EXPECT_FALSE(slow.choices[i].declined.empty());
    }
  }
}

}  // namespace
}  // namespace vitrail
