// The CPU's kernels from the kernel table against the reference backend: the ops of training, with their
// values stored in f32 and in 16 bits, at every level and for several numbers of threads.
#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu_op_cases.h"
#include "backend/cpu_test_util.h"
#include "backend/ref/kernels.h"
#include "base/rng.h"
#include "ops/dropout.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "ops/update/control.h"
#include "tolerance.h"

namespace vitrail {
namespace {

using namespace testing;

// Values with memory of their own.
class Memory {
 public:
  explicit Memory(const TensorDesc& desc) : bytes_(desc.bytes() + 64), desc_(desc) {}
  TensorView view() {
    auto* start = bytes_.data();
    start += (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64;
    return {start, desc_};
  }
  std::vector<double> values() {
    std::vector<double> result(static_cast<size_t>(desc_.elems()));
    convert_floats(view().data(), desc_.dtype, result.data(), DType::kF64, result.size());
    return result;
  }

 private:
  std::vector<std::byte> bytes_;
  TensorDesc desc_;
};

// Random floats in [0.1, 1), which also serve as squares; the step's numbers; counters.
void fill(Memory& memory, size_t input) {
  const TensorView view = memory.view();
  const auto count = static_cast<size_t>(view.desc().elems());
  if (view.dtype() == DType::kI64) {
    for (size_t i = 0; i < count; ++i) static_cast<int64_t*>(view.data())[i] = static_cast<int64_t>(i) + 5;
    return;
  }
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 0.55 + 0.45 * static_cast<double>(counter_uniform(input, i));
  const std::vector<double> step = {0, 0.5, 1e-2, 1, 3, 1};  // StepValues: applied, halved gradients
  if (view.dtype() == DType::kF64) std::copy_n(step.begin(), std::min(count, step.size()), values.begin());
  convert_floats(values.data(), DType::kF64, view.data(), view.dtype(), count);
}

struct Result {
  std::string kernel;
  std::vector<std::vector<double>> values;  // outputs, then updated inputs
  std::vector<DType> dtypes;
};

Result run(const OpCase& c, const Backend& backend, const DeviceInfo& device) {
  std::vector<Memory> ins, outs;
  for (size_t i = 0; i < c.ins.size(); ++i) {
    ins.emplace_back(c.ins[i]);
    fill(ins.back(), i);
  }
  const std::vector<TensorDesc> out_descs = c.op->infer(c.ins);
  for (const TensorDesc& desc : out_descs) outs.emplace_back(desc);
  const NodeView node{*c.op, c.ins, out_descs};
  const Kernel* kernel = backend.choose(node, device).kernel;
  Memory scratch({DType::kU8, {{'Z', static_cast<int64_t>(kernel->scratch_bytes(node, device))}}});
  std::vector<TensorView> in_views, out_views;
  for (Memory& memory : ins) in_views.push_back(memory.view());
  for (Memory& memory : outs) out_views.push_back(memory.view());
  ThreadPool pool(device.threads);
  const TensorView space = scratch.view();
  kernel->run({*c.op,
               in_views,
               out_views,
               {static_cast<std::byte*>(space.data()), space.desc().bytes()},
               LaunchContext{pool, device}});
  Result result{kernel->name, {}, {}};
  for (Memory& memory : outs) result.values.push_back(memory.values());
  for (const TensorDesc& desc : out_descs) result.dtypes.push_back(desc.dtype);
  for (int i : c.op->updates()) {
    result.values.push_back(ins[static_cast<size_t>(i)].values());
    result.dtypes.push_back(c.ins[static_cast<size_t>(i)].dtype);
  }
  return result;
}

// Computes what a gradient adds to its sum by the reference: the one member, then the sum.
Result run_reference(const OpCase& c) {
  const auto* fused = dynamic_cast<const FusedOp*>(c.op.get());
  if (!fused) return run(c, ref_backend(), cpu_device(1));
  const FusedOp::Member &first = fused->members()[0], &second = fused->members()[1];
  OpCase gradient{c.name, first.op, {}};
  for (const int input : inputs_of(first)) gradient.ins.push_back(c.ins[static_cast<size_t>(input)]);
  Result result = run(gradient, ref_backend(), cpu_device(1));
  const auto target = static_cast<size_t>(second.sources[0].input());
  Memory sum(c.ins[target]);
  fill(sum, target);
  const std::vector<double> before = sum.values();
  for (size_t i = 0; i < before.size(); ++i) result.values[0][i] += before[i];
  result.dtypes[0] = c.ins[target].dtype;
  return result;
}

void expect_close(const Result& found, const Result& want, int64_t length, double slack) {
  ASSERT_EQ(found.values.size(), want.values.size());
  for (size_t v = 0; v < want.values.size(); ++v) {
    double largest = 0;
    for (double value : want.values[v]) largest = std::max(largest, std::abs(value));
    const double stored = unit_roundoff(want.dtypes[v]) * 2 * largest;
    const double tolerance = slack * sum_tolerance(DType::kF32, length, largest) + stored;
    for (size_t i = 0; i < want.values[v].size(); ++i)
      ASSERT_NEAR(found.values[v][i], want.values[v][i], tolerance) << "value " << v << " at " << i;
  }
}

class CpuOps : public ::testing::TestWithParam<OpCase> {};

void compare_everywhere(const OpCase& c) {
  const Result want = run_reference(c);
  for (IsaLevel level : available_isa_levels()) {
    SCOPED_TRACE(to_string(level));
    const Result one = run(c, cpu_backend(), cpu_device(1, to_string(level)));
    EXPECT_NE(one.kernel, "ref");
    expect_close(one, want, c.length, 4);
    for (int threads : {2, 3, 8, 16})
      EXPECT_EQ(one.values, run(c, cpu_backend(), cpu_device(threads, to_string(level))).values) << threads;
  }
}

TEST_P(CpuOps, AgreesWithTheReference) {
  compare_everywhere(GetParam());
}

// Weights stay in f32 where an update writes them; its states may be smaller.
TEST_P(CpuOps, AgreesWithTheReferenceOn16Bits) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(to_string(dtype));
    OpCase c = GetParam();
    const std::span<const int> updates = c.op->updates();
    const bool is_sum = c.op->kind().ends_with("accumulate"),
               is_update = c.op->kind().ends_with("_update") || is<SquareSumOp>(*c.op);
    if (c.name == "accumulate") continue;  // takes two of one type, and that is f32
    for (size_t i = 0; i < c.ins.size(); ++i) {
      const bool sum = is_sum && !updates.empty() && static_cast<int>(i) == updates[0];
      if (c.ins[i].dtype == DType::kF32 && !sum && !(is_update && i != 2)) c.ins[i].dtype = dtype;
    }
    compare_everywhere(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Training, CpuOps, ::testing::ValuesIn(training_cases()),
                         [](const auto& test) { return test.param.name; });

// A chain in 16 bits must round where its members would, so its members run one by one.
TEST(CpuHalf, LeavesChainsThatRoundInBetweenToTheirMembers) {
  const FusedOp chain(
      {{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<GeluOp>(false), {made_by(0)}}});
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    const TensorDesc ins[] = {{dtype, {{'B', 4}, {'D', 8}}}, {dtype, {{'F', 6}, {'D', 8}}}};
    const std::vector<TensorDesc> outs = chain.infer(ins);
    const Choice choice = cpu_backend().choose({chain, ins, outs}, cpu_device(1));
    EXPECT_EQ(choice.kernel == nullptr, dtype == DType::kBF16);
  }
}

// A step that is skipped changes nothing but the gradient sums.
TEST(CpuUpdates, SkippedStepLeavesOnlyZeroSums) {
  for (const OpCase& c : update_cases()) {
    if (!c.op->kind().ends_with("_update")) continue;
    std::vector<Memory> memories;
    std::vector<TensorView> views;
    for (size_t i = 0; i < c.ins.size(); ++i) {
      memories.emplace_back(c.ins[i]);
      fill(memories.back(), i);
    }
    views.reserve(memories.size());
    for (Memory& memory : memories) views.push_back(memory.view());
    views.back().as<double>()[0] = 1;
    std::vector<std::vector<double>> before;
    before.reserve(memories.size());
    for (Memory& memory : memories) before.push_back(memory.values());
    const DeviceInfo device = cpu_device(2);
    ThreadPool pool(2);
    const Kernel* kernel = cpu_backend().choose({*c.op, c.ins, {}}, device).kernel;
    std::vector<std::byte> scratch(kernel->scratch_bytes({*c.op, c.ins, {}}, device));
    kernel->run({*c.op, views, {}, scratch, LaunchContext{pool, device}});
    const bool has_sum = c.name != "ema";
    if (has_sum) std::fill(before[1].begin(), before[1].end(), 0.0);
    for (size_t i = 0; i < memories.size(); ++i) EXPECT_EQ(memories[i].values(), before[i]) << c.name << i;
  }
}

// Images of a batch that starts at another position drop what the whole batch drops there.
TEST(CpuDropoutOp, MasksFollowTheGlobalPosition) {
  for (DropUnit unit : {DropUnit::kElement, DropUnit::kSample}) {
    const DropoutOp op(0.5, unit, 3);
    const Floats x(6 * 10, 1.0f);
    const auto drop = [&](int64_t first, int64_t count) {
      const TensorDesc desc = f32({{'B', count}, {'D', 10}}), three{DType::kI64, {{'Z', kCounterCount}}};
      Floats y(static_cast<size_t>(count * 10)), copy = x;
      int64_t counters[] = {1, 2, first};
      const TensorView ins[] = {{copy.data(), desc}, {counters, three}}, outs[] = {{y.data(), desc}};
      const TensorDesc descs[] = {desc, three}, out_descs[] = {desc};
      const DeviceInfo device = cpu_device(2);
      ThreadPool pool(2);
      cpu_backend()
          .choose({op, descs, out_descs}, device)
          .kernel->run({op, ins, outs, {}, LaunchContext{pool, device}});
      return y;
    };
    const Floats whole = drop(100, 6), head = drop(100, 2), tail = drop(102, 4);
    Floats joined = head;
    joined.insert(joined.end(), tail.begin(), tail.end());
    EXPECT_TRUE(same_bits(whole, joined));
    EXPECT_NE(std::count(whole.begin(), whole.end(), 0.0f), 0);
    EXPECT_NE(std::count(whole.begin(), whole.end(), 2.0f), 0);
  }
}

}  // namespace
}  // namespace vitrail
