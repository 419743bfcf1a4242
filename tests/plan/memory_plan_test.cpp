#include "plan/memory_plan.h"

#include <gtest/gtest.h>

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

// No two values that live at the same time may share a byte, unless an op was allowed to work in place.
void expect_disjoint(const ExecutionPlan& plan) {
  std::vector<Placement> all = plan.memory.scratch;
  for (const Placement& p : plan.memory.values)
    if (!p.persistent && p.bytes > 0) all.push_back(p);
  for (size_t a = 0; a < all.size(); ++a) {
    EXPECT_LE(all[a].offset + all[a].bytes, plan.memory.transient_bytes);
    for (size_t b = a + 1; b < all.size(); ++b) {
      const bool same_block =
          all[a].offset == all[b].offset && all[a].first == all[b].first && all[a].last == all[b].last;
      const bool together = all[a].first <= all[b].last && all[b].first <= all[a].last;
      if (same_block || !together || all[a].bytes == 0 || all[b].bytes == 0) continue;
      EXPECT_TRUE(all[a].offset + all[a].bytes <= all[b].offset ||
                  all[b].offset + all[b].bytes <= all[a].offset);
    }
  }
}

TEST(MemoryPlan, ValuesThatLiveTogetherNeverOverlap) {
  for (const char* backend : {"ref", "cpu"})
    for (bool fused : {false, true})
      for (int64_t batch : {1, 3}) expect_disjoint(plan_of(small(3, 32, 40), batch, fused, backend));
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
