#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/cpu_isa.h"
#include "backend/cpu/kernels.h"
#include "backend/ref/kernels.h"
#include "ops/linear.h"

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
  EXPECT_EQ(slow.declined.size(), 3u);
  const TensorDesc doubles[] = {{DType::kF64, {{'B', 1}, {'D', 8}}}, {DType::kF64, {{'F', 4}, {'D', 8}}}};
  const std::vector<TensorDesc> double_outs = op.infer(doubles);
  const Choice slowest = cpu_backend().choose({op, doubles, double_outs}, cpu_device(1));
  EXPECT_STREQ(slowest.kernel->name, "ref");
  EXPECT_EQ(slowest.declined.size(), 4u);
}

TEST(CpuDevice, NamesWhatItCanRun) {
  EXPECT_EQ(cpu_device(3).threads, 3);
  EXPECT_GE(cpu_device(0).threads, 1);
  EXPECT_EQ(cpu_device(1, "baseline").isa, static_cast<int>(IsaLevel::kBaseline));
  EXPECT_THROW(cpu_device(1, "neon"), Error);
}

}  // namespace
}  // namespace vitrail
