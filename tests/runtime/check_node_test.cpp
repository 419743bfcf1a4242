// The check of one node: each of its results is compared, not only the first.
#include "runtime/check/check_node.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "graph/builder.h"
#include "ops/grouped.h"
#include "ops/layernorm.h"
#include "ops/persistent.h"

namespace vitrail {
namespace {

constexpr int64_t kRows = 3, kWidth = 4;
constexpr float kOff = 0.01f;

// The gradient of a layernorm with scale 1 at rows of 1, -1, 1, -1, which are normal already, for a gradient
// of 1 in one column: what eps does is far below kOff.
struct Norm {
  std::vector<float> x{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1}, scale{1, 1, 1, 1};
  std::vector<float> dy{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  std::vector<float> dx, dscale{3, 0, 0, 0}, dbias{3, 0, 0, 0};
  Norm() {
    // dx = dy - mean(dy) - y * mean(dy * y)
    for (size_t i = 0; i < x.size(); ++i) dx.push_back(dy[i] - 0.25f - x[i] * 0.25f);
  }
};

void check(Norm norm) {
  const TensorDesc rows{DType::kF32, {{'N', kRows}, {'D', kWidth}}}, row{DType::kF32, {{'D', kWidth}}};
  Builder b;
  const std::vector<ValueId> ins = {b.input("x", rows), b.input("scale", row), b.input("dy", rows)};
  const std::vector<ValueId> outs = b.add_all(std::make_shared<LayernormGradOp>(1e-9, true), ins, "norm");
  for (const ValueId out : outs) b.output("out" + std::to_string(out), out);
  const Program program = b.finish();
  RankContext rank(cpu_device(1));
  NodeCheck node(program.nodes.at(0), program, {}, rank);
  node.add_input({norm.x.data(), rows});
  node.add_input({norm.scale.data(), row});
  node.add_input({norm.dy.data(), rows});
  node.compare({{norm.dx.data(), rows}, {norm.dscale.data(), row}, {norm.dbias.data(), row}});
}

TEST(NodeCheck, EveryResultIsCompared) {
  EXPECT_NO_THROW(check(Norm()));
  for (std::vector<float> Norm::*const result : {&Norm::dx, &Norm::dscale, &Norm::dbias}) {
    Norm norm;
    (norm.*result)[2] += kOff;
    EXPECT_THROW(check(norm), Error);
  }
}

// Two gradients added to their sums in one node; found is what the sums are after it.
void check_grouped(std::vector<float> first, std::vector<float> second) {
  const TensorDesc two{DType::kF32, {{'D', 2}}}, three{DType::kF32, {{'D', 3}}};
  std::vector<float> sums{1, 2}, grads{10, 20}, other_sums{3, 4, 5}, other_grads{30, 40, 50};
  const auto add = std::make_shared<AccumulateOp>();
  Builder b;
  const std::vector<ValueId> ins = {b.state("sum", two, Category::kGradients), b.input("grad", two),
                                    b.state("other_sum", three, Category::kGradients),
                                    b.input("other_grad", three)};
  b.add_all(std::make_shared<GroupedOp>(std::vector<GroupedOp::Part>{{add, 0, 2}, {add, 2, 2}}), ins, "all");
  const Program program = b.finish();
  RankContext rank(cpu_device(1));
  NodeCheck node(program.nodes.at(0), program, {}, rank);
  node.add_persistent({sums.data(), two}, rank);
  node.add_input({grads.data(), two});
  node.add_persistent({other_sums.data(), three}, rank);
  node.add_input({other_grads.data(), three});
  node.compare({{first.data(), two}, {second.data(), three}});
  EXPECT_EQ(sums, (std::vector<float>{1, 2})) << "the check changes nothing that the program holds";
  EXPECT_EQ(other_sums, (std::vector<float>{3, 4, 5}));
}

TEST(NodeCheck, EveryPartOfAGroupIsCompared) {
  EXPECT_NO_THROW(check_grouped({11, 22}, {33, 44, 55}));
  EXPECT_THROW(check_grouped({11, 22.01f}, {33, 44, 55}), Error);
  EXPECT_THROW(check_grouped({11, 22}, {33, 44, 55.01f}), Error);
  EXPECT_THROW(check_grouped({1, 2}, {33, 44, 55}), Error) << "one of them did nothing";
  EXPECT_THROW(check_grouped({11, 22}, {3, 4, 5}), Error);
}

}  // namespace
}  // namespace vitrail
