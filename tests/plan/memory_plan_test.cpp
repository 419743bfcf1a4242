#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "backend/cpu/kernels.h"
#include "graph/builder.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "passes/tiny_training.h"
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
  return plan_execution(inference_program(record_vit(config, {.batch = batch}), {.fuse = fused}),
                        find_backend(backend), cpu_device(2));
}

using Bytes = std::vector<int>;  // which value or scratch wrote each byte last

void mark(Bytes& arena, const Placement& p, int owner) {
  ASSERT_LE(p.offset + p.bytes, arena.size());
  std::fill_n(arena.begin() + static_cast<std::ptrdiff_t>(p.offset), p.bytes, owner);
}

void expect_owner(const Bytes& arena, const Placement& p, int owner, const std::string& what) {
  for (size_t i = 0; i < p.bytes; ++i) ASSERT_EQ(arena[p.offset + i], owner) << what << " was overwritten";
}

// Simulates the program on a map of the arena: whatever a node reads must still be what was written for it,
// and neither its scratch nor its output may overlap an input that is read while it runs (except the one it
// declares it overwrites).
void expect_sound(const ExecutionPlan& plan) {
  const Program& program = plan.program;
  Bytes arena(plan.memory.transient_bytes, -1);
  const auto transient = [&](ValueId id) { return !program.values[id].persistent(); };
  for (size_t id = 0; id < program.values.size(); ++id)
    if (program.values[id].kind == ValueKind::kInput)
      mark(arena, plan.memory.values[id], static_cast<int>(id));
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    mark(arena, plan.memory.scratch[i], -2);
    const int overwritten = node.op->in_place_input();
    const bool in_place =
        overwritten >= 0 && !node.outs.empty() && transient(node.ins[overwritten]) &&
        plan.memory.values[node.ins[overwritten]].offset == plan.memory.values[node.outs[0]].offset;
    for (size_t o = in_place ? 1 : 0; o < node.outs.size(); ++o)
      mark(arena, plan.memory.values[node.outs[o]], node.outs[o]);
    for (ValueId id : node.ins)
      if (transient(id))
        expect_owner(arena, plan.memory.values[id], id, node.name + " reads " + program.values[id].name);
    if (in_place) mark(arena, plan.memory.values[node.outs[0]], node.outs[0]);
    for (ValueId id : node.outs) expect_owner(arena, plan.memory.values[id], id, node.name);
  }
  for (const Output& out : program.outputs)
    expect_owner(arena, plan.memory.values[out.value], out.value, out.name);
}

TEST(MemoryPlan, ValuesThatLiveTogetherNeverOverlap) {
  for (const char* backend : {"ref", "cpu"})
    for (bool fused : {false, true})
      for (int64_t batch : {1, 3}) expect_sound(plan_of(small(3, 32, 40), batch, fused, backend));
}

ExecutionPlan training_plan(const char* backend, bool fused, const RecomputeOptions& again,
                            const PrecisionOptions& types = {}, int64_t batch = 2) {
  Program program = step_after("schedule", small(3, 32, 40),
                               {.precision = types, .recompute = again, .join = false, .fuse = fused},
                               {.batch = batch, .dropout = 0.1, .drop_path = 0.1});
  return plan_execution(std::move(program), find_backend(backend), cpu_device(2), {.pack = false});
}

TEST(MemoryPlan, ValuesOfATrainingStepNeverOverlap) {
  const PrecisionOptions half{.compute = DType::kBF16, .residual = DType::kBF16};
  for (const char* backend : {"ref", "cpu"})
    for (bool fused : {false, true})
      for (const RecomputeOptions& again : {RecomputeOptions{},
                                            {Recompute::kNorms},
                                            {Recompute::kCheap},
                                            {Recompute::kMlp},
                                            {Recompute::kBlock},
                                            {Recompute::kBlock, 2}}) {
        expect_sound(training_plan(backend, fused, again));
        expect_sound(training_plan(backend, fused, again, half));
      }
}

// Values that reuse one another's bytes count once.
size_t saved_bytes(const ExecutionPlan& plan) {
  std::map<std::pair<size_t, int>, size_t> blocks;
  for (const Placement& placement : plan.memory.values)
    if (placement.category == Category::kSaved) blocks[{placement.offset, placement.last}] = placement.bytes;
  return std::accumulate(blocks.begin(), blocks.end(), size_t{0},
                         [](size_t sum, const auto& block) { return sum + block.second; });
}

TEST(MemoryPlan, SavedIsWhatGoesForwardAndIsReadGoingBack) {
  const ExecutionPlan plan = training_plan("cpu", false, {});
  std::vector<int> writer(plan.program.values.size(), -1);
  for (size_t i = 0; i < plan.program.nodes.size(); ++i)
    for (ValueId id : plan.program.nodes[i].outs) writer[id] = static_cast<int>(i);
  const auto backward = [&](int node) {
    return node < static_cast<int>(plan.program.nodes.size()) &&
           plan.program.nodes[node].phase == Phase::kBackward;
  };
  int saved = 0;
  for (size_t id = 0; id < plan.program.values.size(); ++id) {
    const Placement& placement = plan.memory.values[id];
    if (writer[id] < 0 || plan.program.is_output(static_cast<ValueId>(id))) continue;
    EXPECT_EQ(placement.category == Category::kSaved, !backward(writer[id]) && backward(placement.last))
        << plan.program.values[id].name;
    saved += placement.category == Category::kSaved;
  }
  EXPECT_GT(saved, 3 * 8);
}

TEST(MemoryPlan, RecomputeSavesLess) {
  const size_t none = saved_bytes(training_plan("cpu", true, {})),
               norms = saved_bytes(training_plan("cpu", true, {Recompute::kNorms})),
               cheap = saved_bytes(training_plan("cpu", true, {Recompute::kCheap})),
               mlp = saved_bytes(training_plan("cpu", true, {Recompute::kMlp})),
               block = saved_bytes(training_plan("cpu", true, {Recompute::kBlock})),
               pair = saved_bytes(training_plan("cpu", true, {Recompute::kBlock, 2}));
  EXPECT_LT(norms, none);
  EXPECT_LT(cheap, norms);
  EXPECT_LT(mlp, none);
  EXPECT_LT(block, mlp);
  EXPECT_LT(pair, block);
}

TEST(MemoryPlan, HalfPrecisionSavesLessAndCountsItsCopies) {
  const ExecutionPlan full = training_plan("cpu", true, {}),
                      half =
                          training_plan("cpu", true, {}, {.compute = DType::kBF16, .residual = DType::kBF16});
  EXPECT_LT(saved_bytes(half), saved_bytes(full));
  EXPECT_EQ(half.memory.persistent->bytes(Category::kGradients),
            full.memory.persistent->bytes(Category::kGradients));
  for (const char* name : {"head.weight@bf16", "blocks.0.attn.qkv.weight@bf16"})
    EXPECT_EQ(half.memory.persistent->at(name).category, Category::kParameters);
  EXPECT_FALSE(half.memory.persistent->has("head.weight")) << "the step reads copies; the update has masters";
}

TEST(MemoryPlan, GradientsHaveAnArenaOfTheirOwn) {
  const ExecutionPlan plan = training_plan("ref", true, {});
  size_t parameters = 0;
  for (const PersistentValue& value : plan.memory.persistent->values()) {
    if (value.kind != ValueKind::kParameter) continue;
    parameters += (value.desc.bytes() + 63) / 64 * 64;
    const PersistentValue& sum = plan.memory.persistent->at(gradient_name(value.name));
    EXPECT_EQ(sum.desc.shape, value.desc.shape);
    EXPECT_EQ(sum.category, Category::kGradients);
  }
  EXPECT_EQ(plan.memory.persistent->bytes(Category::kParameters), parameters);
  EXPECT_EQ(plan.memory.persistent->bytes(Category::kGradients), parameters);
  EXPECT_EQ(plan.memory.persistent_bytes, 2 * parameters);
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
  const size_t fragmentation = memory.transient_bytes - memory.lower_bound_bytes;
  EXPECT_EQ(sum + fragmentation, memory.peak_bytes());
}

TEST(MemoryPlan, OutputsKeepTheirBytesToTheEnd) {
  const ExecutionPlan plan = plan_of(small(2, 32, 32), 1, true, "cpu");
  const Placement& logits = plan.memory.values[plan.program.output("logits")];
  EXPECT_EQ(logits.last, static_cast<int>(plan.program.nodes.size()));
}

// Records tanh(x), cast to another type if given, added to itself or to `other`.
struct SmallSum {
  Builder b;
  ValueId x = b.input("x", {DType::kF32, {{'B', 2}, {'D', 64}}});
  ValueId hidden = b.add<TanhOp>({x}, "tanh");

  MemoryPlan planned(ValueId left, ValueId right, bool staged = false) {
    b.output("sum", b.add<AddOp>({left, right}, "sum"));
    program = b.finish();
    return plan_memory(program, std::vector<size_t>(program.nodes.size(), 0), nullptr, staged);
  }
  Program program;
};

TEST(MemoryPlan, AValueReadTwiceIsNotOverwritten) {
  SmallSum sum;
  const MemoryPlan memory = sum.planned(sum.hidden, sum.hidden);
  EXPECT_NE(memory.values[sum.program.output("sum")].offset, memory.values[sum.hidden].offset);
}

TEST(MemoryPlan, AResultOfAnotherSizeHasAPlaceOfItsOwn) {
  SmallSum sum;
  const ValueId low = sum.b.add<CastOp>({sum.hidden}, "low", DType::kBF16);
  const MemoryPlan memory = sum.planned(low, sum.x);
  const ValueId out = sum.program.output("sum");
  ASSERT_GT(memory.values[out].bytes, memory.values[low].bytes);
  EXPECT_NE(memory.values[out].offset, memory.values[low].offset);
}

TEST(MemoryPlan, StagedInputsAreCountedOnceAndApart) {
  SmallSum sum;
  const MemoryPlan memory = sum.planned(sum.hidden, sum.x, true);
  EXPECT_EQ(memory.staging_bytes, 2u * 64 * 4);
  EXPECT_EQ(memory.by_category[static_cast<size_t>(Category::kStaging)], memory.staging_bytes);
  EXPECT_TRUE(memory.values[sum.x].staged);
}

// Inputs of odd sizes: each is aligned for whole vectors, and none overlaps another.
TEST(MemoryPlan, StagedInputsAreAlignedAndApart) {
  SmallSum sum;
  const ValueId odd[] = {sum.b.input("words", {DType::kI32, {{'Z', 3}}}),
                         sum.b.input("bytes", {DType::kU8, {{'Z', 65}}}),
                         sum.b.input("last", {DType::kF32, {{'D', 1}}})};
  const MemoryPlan memory = sum.planned(sum.hidden, sum.x, true);
  EXPECT_EQ(memory.values[sum.x].offset, 0u);
  const size_t offsets[] = {512, 576, 704};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(memory.values[odd[i]].staged);
    EXPECT_EQ(memory.values[odd[i]].offset, offsets[i]);
  }
  EXPECT_EQ(memory.staging_bytes, 768u);
}

TEST(KernelChoice, SaysWhyAFasterKernelDeclined) {
  const ExecutionPlan plan = plan_of(small(1, 32, 32), 1, false, "cpu");
  // A plain program shares no weights: every linear is packed, and the reference runs what has no kernel.
  for (size_t i = 0; i < plan.program.nodes.size(); ++i) {
    if (!is<LinearOp>(*plan.program.nodes[i].op)) continue;
    EXPECT_STREQ(plan.choices[i].launches[0].kernel->name, "packed gemm");
  }
  const struct {
    DType dtype;
    const char* kernel;
  } rows[] = {{DType::kBF16, "in f32"}, {DType::kF64, "ref"}};
  const DeviceInfo no_bf16 = planned_cpu_device(1, "avx2");
  for (const auto& row : rows) {
    const ExecutionPlan slow =
        plan_execution(record_vit(small(1, 32, 32), {.dtype = row.dtype}), cpu_backend(), no_bf16);
    for (size_t i = 0; i < slow.program.nodes.size(); ++i) {
      if (!is<LinearOp>(*slow.program.nodes[i].op)) continue;
      EXPECT_STREQ(slow.choices[i].launches[0].kernel->name, row.kernel);
      EXPECT_FALSE(slow.choices[i].declined.empty());
    }
  }
}

}  // namespace
}  // namespace vitrail
