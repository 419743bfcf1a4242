// Launches on a GPU read addresses alone, also of nodes that the list of op cases does not hold: grouped
// updates, GEMMs of rounded factors, attention that keeps its sums.
#include <gtest/gtest.h>

#include <map>

#include "attention_sums_cases.h"
#include "backend/cuda/kernels.h"
#include "cuda_calls.h"
#include "ops/attention_bias_grad.h"
#include "ops/grouped.h"
#include "ops/persistent.h"
#include "run_op.h"

namespace vitrail {
namespace {

// So many parts of one kind, of all its cases in turn, every fourth of them an empty shard.
struct Group {
  Group(const std::vector<OpCase>& cases, size_t count) {
    std::vector<GroupedOp::Part> parts;
    for (size_t i = 0; i < count; ++i) {
      const OpCase& c = cases[i % cases.size()];
      std::vector<TensorDesc> own = input_descs(c, c.ins, {.dtype = DType::kBF16});
      for (TensorDesc& desc : own)
        if (i % 4 == 3 && desc.dtype != DType::kF64) desc.shape = Shape{{'D', 0}};
      parts.push_back({c.op, ins.size(), own.size()});
      ins.insert(ins.end(), own.begin(), own.end());
    }
    op = std::make_shared<GroupedOp>(std::move(parts));
  }
  // The numbers of a step, which all parts read, lie in one place.
  Operands operands() const {
    Operands operands = separate_operands({*op, ins, {}});
    std::map<int64_t, std::byte*> shared;  // by their count: the control's and the hyperparameters' differ
    for (size_t i = 0; i < ins.size(); ++i)
      if (ins[i].dtype == DType::kF64)
        operands.ins[i] = shared.emplace(ins[i].elems(), operands.ins[i]).first->second;
    return operands;
  }

  std::vector<TensorDesc> ins;
  std::shared_ptr<const GroupedOp> op;
};

std::map<std::string, std::vector<OpCase>> grouped_kinds() {
  std::map<std::string, std::vector<OpCase>> kinds;
  for (const OpCase& c : op_cases())
    if (cuda_backend().find(GroupedOp::kind_of(c.op->kind()))) kinds[std::string(c.op->kind())].push_back(c);
  return kinds;
}

TEST(CudaLaunch, OfGroupsReadsAddressesAlone) {
  const auto kinds = grouped_kinds();
  EXPECT_GE(kinds.size(), 10u);
  for (const auto& [kind, cases] : kinds)
    for (const size_t count : {size_t{1}, size_t{2}, size_t{700}}) {
      const Group group(cases, count);
      EXPECT_EQ(expect_blind_launches(kind, {*group.op, group.ins, {}}, group.operands()), 1) << kind;
    }
}

size_t calls_of_group(const Group& group, const Operands& operands) {
  const NodeView node{*group.op, group.ins, {}};
  const DeviceInfo device = planned_cuda_device("H200", 90, 132);
  const Prepared prepared = cuda_backend().choose(node, device).kernel->prepare(node, device);
  return calls_of(prepared, node, device, operands, 0, true).size();
}

// A call of Adam's holds 240 parameters, all with the numbers of one step.
TEST(CudaLaunch, OfAGroupMakesAsFewCallsAsHoldIt) {
  const OpCase adam = grouped_kinds().at("adam_update")[0];
  for (const auto& [count, calls] : {std::pair<size_t, size_t>{1, 1}, {320, 1}, {321, 2}, {960, 3}}) {
    const Group group({adam}, count);  // three quarters of them are no empty shards
    EXPECT_EQ(calls_of_group(group, group.operands()), calls) << count;
  }
  const Group group({adam}, 3);
  EXPECT_EQ(calls_of_group(group, separate_operands({*group.op, group.ins, {}})), 3u);
}

int expect_blind_case(const OpCase& c, DType dtype) {
  const std::vector<TensorDesc> ins = input_descs(c, c.ins, {.dtype = dtype}), outs = c.op->infer(ins);
  const NodeView node{*c.op, ins, outs};
  return expect_blind_launches(c.name, node, separate_operands(node));
}

TEST(CudaLaunch, OfAttentionThatKeepsItsSumsReadsAddressesAlone) {
  for (const SumsSize& s : {SumsSize{300, 2, 64}, SumsSize{577, 2, 128}})
    for (const DType dtype : {DType::kF16, DType::kBF16})
      for (const OpCase& c : {sums_case(s), sums_grad_case(s), plain_case(s), plain_grad_case(s)})
        EXPECT_GT(expect_blind_case(c, dtype), 0) << c.name;
}

TEST(CudaLaunch, OfAttentionsGradientWithItsSumsReadsAddressesAlone) {
  OpCase c = plain_grad_case({197, 2, 64});
  c.op = make_op<AttentionBiasGradOp>();
  for (const DType dtype : {DType::kF16, DType::kBF16}) EXPECT_EQ(expect_blind_case(c, dtype), 1);
}

// A weight as a GEMM in fp8 wants it is made when it is loaded.
TEST(CudaLaunch, OfAWeightThatIsRoundedAtLoadReadsAddressesAlone) {
  const TensorDesc plain{DType::kBF16, {{'F', 64}, {'D', 32}}};
  TensorDesc packed = plain;
  packed.packing = "fp8-rows", packed.packed_rows = 64, packed.packed_bytes = 64 * 32 + 2 * 64 * 4;
  const LoadParamOp op(packed);
  const NodeView node{op, {&plain, 1}, {&packed, 1}};
  EXPECT_EQ(expect_blind_launches("load_param", node, separate_operands(node)), 1);
}

}  // namespace
}  // namespace vitrail
