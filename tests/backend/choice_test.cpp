#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/host/levels.h"
#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "ops/attention.h"
#include "ops/bias.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/gelu.h"
#include "ops/linear.h"
#include "ops/persistent.h"

namespace vitrail {
namespace {

TEST(Backends, AreFoundByName) {
  EXPECT_EQ(&find_backend("ref"), &ref_backend());
  EXPECT_EQ(&find_backend("cpu"), &cpu_backend());
  try {
    find_backend("tpu");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(error.hint().find("cpu"), std::string::npos);
  }
}

TEST(Backends, EveryOpOfTheReferenceIsServedByTheCpuWithTheReferenceLast) {
  for (const OpKernels& row : ref_backend().kernels()) {
    const std::vector<Kernel>* list = cpu_backend().find(row.op);
    ASSERT_NE(list, nullptr) << row.op;
    EXPECT_STREQ(list->back().name, "ref") << row.op;
  }
}

TEST(Backends, KernelNamesOfAnOpAreDistinct) {
  for (const OpKernels& row : cpu_backend().kernels()) {
    std::set<std::string> names;
    for (const Kernel& kernel : row.kernels)
      EXPECT_TRUE(names.insert(kernel.name).second) << row.op << " " << kernel.name;
  }
}

// Counts the kernels of linear's list that are tried before this one.
size_t place_of(const char* name) {
  size_t place = 0;
  for (const Kernel& kernel : *cpu_backend().find("linear")) {
    if (std::string_view(kernel.name) == name) break;
    place += !kernel.only_by_table;
  }
  return place;
}

TEST(Choice, ReportsEachReasonInOrder) {
  const LinearOp op;
  const TensorDesc ins[] = {{DType::kF32, {{'B', 1}, {'D', 8}}}, {DType::kF32, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> outs = op.infer(ins);
  const Choice plain = cpu_backend().choose({op, ins, outs}, cpu_device(1));
  ASSERT_GE(plain.declined.size(), 1u);
  EXPECT_EQ(plain.declined[0], "packed gemm: the weight is not packed for this instruction set");
  const TensorDesc halves[] = {{DType::kF16, {{'B', 1}, {'D', 8}}}, {DType::kF16, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> half_outs = op.infer(halves);
  const Choice slow = cpu_backend().choose({op, halves, half_outs}, cpu_device(1));
  EXPECT_STREQ(slow.kernel->name, "in f32");
  EXPECT_EQ(slow.declined.size(), place_of("in f32"));
  const TensorDesc doubles[] = {{DType::kF64, {{'B', 1}, {'D', 8}}}, {DType::kF64, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> double_outs = op.infer(doubles);
  const Choice slowest = cpu_backend().choose({op, doubles, double_outs}, cpu_device(1));
  EXPECT_STREQ(slowest.kernel->name, "ref");
  EXPECT_EQ(slowest.declined.size(), place_of("ref"));
}

KernelTable::Row row(int64_t m, int threads, const std::vector<std::string>& kernels) {
  KernelTable::Row made;
  made.key.op = "linear";
  made.key.m = m, made.key.n = 4, made.key.k = 8, made.key.threads = threads;
  made.kernels = kernels;
  return made;
}

TEST(Choice, ATableGoesBeforeTheListWhereItsKernelAccepts) {
  const LinearOp op;
  const std::vector<TensorDesc> ins = {{DType::kF32, {{'B', 6}, {'D', 8}}},
                                       {DType::kF32, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> outs = op.infer(ins);
  const auto chosen = [&](const std::vector<std::string>& kernels, int64_t m) -> std::string {
    DeviceInfo device = cpu_device(2, "baseline");
    KernelTable table;
    table.set(row(m, 2, kernels));
    device.kernels = std::make_shared<KernelTable>(table);
    return cpu_backend().choose({op, ins, outs}, device).kernel->name;
  };
  EXPECT_EQ(chosen({}, 6), "gemm that packs");
  EXPECT_EQ(chosen({"ref"}, 6), "ref");
  EXPECT_EQ(chosen({"ref"}, 7), "gemm that packs") << "another size";
  EXPECT_EQ(chosen({"packed gemm", "ref"}, 6), "ref") << "the weight is not packed";
  EXPECT_EQ(chosen({"a kernel of the past", "gemm that packs"}, 6), "gemm that packs");
}

TEST(Choice, AFusedGemmIsKnownByItsGemm) {
  const auto linear = std::make_shared<LinearOp>();
  const FusedOp fused({{linear, {0, 1}}, {std::make_shared<BiasOp>(), {made_by(0), 2}}});
  const std::vector<TensorDesc> ins = {
      {DType::kF32, {{'B', 6}, {'D', 8}}}, {DType::kF32, {{'F', 4}, {'D', 8}}}, {DType::kF32, {{'F', 4}}}};
  const std::vector<TensorDesc> outs = fused.infer(ins);
  const auto key = cpu_backend().tune_key({fused, ins, outs}, cpu_device(3, "baseline"));
  ASSERT_TRUE(key);
  EXPECT_EQ(*key, row(6, 3, {}).key);
  EXPECT_FALSE(ref_backend().tune_key({fused, ins, outs}, cpu_device(1)));
}

TEST(KernelTable, ReplacesFindsAndHashes) {
  KernelTable table;
  EXPECT_EQ(table.hash(), 0u);
  table.set(row(5, 1, {"b"}));
  table.set(row(3, 1, {"a"}));
  const uint64_t before = table.hash();
  EXPECT_EQ(table.find(row(4, 1, {}).key), nullptr);
  EXPECT_EQ(table.find(row(3, 2, {}).key), nullptr);
  table.set(row(5, 1, {"c"}));
  ASSERT_NE(table.find(row(5, 1, {}).key), nullptr);
  EXPECT_EQ(*table.find(row(5, 1, {}).key), std::vector<std::string>{"c"});
  EXPECT_EQ(table.rows().size(), 2u);
  EXPECT_NE(table.hash(), before);
}

// The GEMM by bf16 parts, on a CPU that need not be present.
TEST(Choice, PartsAreForTilesWhereATableNamesThem) {
  const LinearOp op;
  const std::vector<TensorDesc> plain = {{DType::kF32, {{'B', 6}, {'D', 8}}},
                                         {DType::kF32, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> outs = op.infer(plain);
  for (const char* isa : {"amx", "avx512"}) {
    DeviceInfo device = planned_cpu_device(2, isa, 1 << 30);
    for (const Kernel* kernel : cpu_backend().candidates({op, plain, outs}, device))
      EXPECT_STRNE(kernel->name, "gemm by bf16 parts") << "without a table";
    KernelTable table;
    KernelTable::Row wanted = row(6, 2, {"gemm by bf16 parts"});
    wanted.key.level = device.isa;
    table.set(wanted);
    device.kernels = std::make_shared<KernelTable>(table);
    const Kernel* kernel = cpu_backend().candidates({op, plain, outs}, device).front();
    ASSERT_STREQ(kernel->name, "gemm by bf16 parts");
    const Packing packing = kernel->packing({op, plain, outs}, device);
    if (isa == std::string("avx512")) {
      EXPECT_LT(packing.input, 0);
      continue;
    }
    EXPECT_EQ(packing.name, "split-amx");
    EXPECT_EQ(packing.bytes, 3u * 2 * 32 * 32);  // parts, bytes of one, a panel's columns, a step's values
    EXPECT_FALSE(kernel->declines({op, plain, outs}, device).empty()) << "a plain weight";
    std::vector<TensorDesc> packed = plain;
    packed[1].packing = packing.name;
    EXPECT_EQ(kernel->declines({op, packed, outs}, device), "");
  }
}

struct FusedRow {
  const char *isa, *kernel;
  FusedOp op;
  std::vector<TensorDesc> ins;
};

// What is fused for a kernel of its own gets that kernel, not one that computes its members in turn.
TEST(Choice, FusedNodesHaveKernelsOfTheirOwn) {
  const Dim b('B', 6), n('N', 5), d('D', 32), f('F', 4), t('T', 3), h('H', 2), e('E', 16);
  const DType f32 = DType::kF32, low = DType::kBF16;
  const FusedOp weight_sum(
      {{std::make_shared<LinearDwOp>(), {0, 1}}, {std::make_shared<AccumulateOp>(), {2, made_by(0)}}});
  const FusedOp gelu_grad(
      {{std::make_shared<LinearDxOp>(), {0, 1}}, {std::make_shared<GeluGradOp>(false), {2, made_by(0)}}});
  const FusedOp first_token({{std::make_shared<LinearOp>(), {0, 1}},
                             {std::make_shared<BiasOp>(), {made_by(0), 2}},
                             {std::make_shared<AttentionOp>(QueryScope::kClassToken), {made_by(1)}}});
  const FusedOp residual({{std::make_shared<LinearOp>(), {0, 1}},
                          {std::make_shared<BiasOp>(), {made_by(0), 2}},
                          {std::make_shared<AddOp>(), {3, made_by(1)}}});
  const FusedRow rows[] = {
      {"avx2", "sums by chunks", weight_sum, {{f32, {b, d}}, {f32, {b, f}}, {f32, {f, d}}}},
      {"amx", "bf16 tiles by chunks", weight_sum, {{low, {b, d}}, {low, {b, f}}, {f32, {f, d}}}},
      {"avx2", "gemm with gelu slope", gelu_grad, {{f32, {b, f}}, {f32, {f, d}}, {f32, {b, d}}}},
      {"avx2",
       "one query by the tokens",
       first_token,
       {{f32, {b, n, d}}, {f32, {t, h, e, d}}, {f32, {t, h, e}}}},
      {"amx", "bf16 tiles", residual, {{low, {b, d}}, {low, {f, d}}, {f32, {f}}, {f32, {b, f}}}},
  };
  for (const FusedRow& row : rows) {
    const std::vector<TensorDesc> outs = row.op.infer(row.ins);
    const Choice choice =
        cpu_backend().choose({row.op, row.ins, outs}, planned_cpu_device(1, row.isa, 1 << 30));
    std::string declined;
    for (const std::string& reason : choice.declined) declined += "\n" + reason;
    ASSERT_NE(choice.kernel, nullptr) << row.kernel << declined;
    EXPECT_STREQ(choice.kernel->name, row.kernel) << declined;
  }
}

std::vector<std::string> names_in(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  names.reserve(kernels.size());
  for (const Kernel& kernel : kernels) names.emplace_back(kernel.name);
  return names;
}

// Fastest first; then what widens 16-bit floats for them, and the reference where it has the op.
TEST(Choice, KernelsOfGemmsInTheOrderTheyAreTried) {
  const std::vector<std::string> linear = {"packed gemm",     "gemm by bf16 parts", "int8 gemm", "bf16 gemm",
                                           "gemm that packs", "onednn tiles",       "bf16 tiles"};
  std::vector<std::string> alone = linear, fused = linear;
  alone.insert(alone.end(), {"in f32", "ref"});
  fused.insert(fused.end(), {"sums by chunks", "bf16 tiles by chunks", "one query by the tokens",
                             "gemm with gelu slope", "in f32"});
  const FusedOp biased(
      {{std::make_shared<LinearOp>(), {0, 1}}, {std::make_shared<BiasOp>(), {made_by(0), 2}}});
  EXPECT_EQ(names_in(*cpu_backend().find("linear")), alone);
  EXPECT_EQ(names_in(*cpu_backend().find(row_name(biased))), fused);
}

TEST(CpuDevice, PlansForProcessorsThatAreNotHere) {
  for (const IsaLevel level : all_isa_levels()) {
    const DeviceInfo device = planned_cpu_device(4, to_string(level), 1 << 30);
    const LinearOp op;
    const std::vector<TensorDesc> ins = {{DType::kF32, {{'B', 6}, {'D', 8}}},
                                         {DType::kF32, {{'F', 4}, {'D', 8}}}};
    const std::vector<TensorDesc> outs = op.infer(ins);
    const NodeView node{op, ins, outs};
    const Kernel* kernel = cpu_backend().choose(node, device).kernel;
    EXPECT_GT(kernel->scratch_bytes(node, device), 0u) << to_string(level);
  }
  EXPECT_THROW(planned_cpu_device(1, "neon"), Error);
}

TEST(CpuDevice, NamesWhatItCanRun) {
  EXPECT_EQ(cpu_device(3).threads, 3);
  EXPECT_GE(cpu_device(0).threads, 1);
  EXPECT_EQ(cpu_device(1, "baseline").isa, static_cast<int>(IsaLevel::kBaseline));
  EXPECT_THROW(cpu_device(1, "neon"), Error);
}

}  // namespace
}  // namespace vitrail
