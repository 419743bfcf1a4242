// An update shared out to ranks: which norms are summed where, what each rank owns of a value, what is
// gathered.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "ops/collective.h"
#include "ops/flat.h"
#include "ops/persistent.h"
#include "ops/update/adam.h"
#include "ops/update/control.h"
#include "ops/update/lamb_parts.h"
#include "passes/distribute.h"
#include "passes/flat_groups.h"

namespace vitrail::distributed_updates {
namespace {

const UpdateScale kScale{1, 0, DecayStyle::kCoupled, 0.1};

template <typename Update>
void record(Builder& b, const std::string& name, const Shape& shape, ValueId control, const Update& op) {
  const TensorDesc desc{DType::kF32, shape};
  b.add_all(std::make_shared<Update>(op),
            {b.parameter(name, desc), b.state(gradient_name(name), desc, Category::kGradients, name),
             b.state("optim/" + name + "/m", desc, Category::kOptimizer, name),
             b.state("optim/" + name + "/v", desc, Category::kOptimizer, name), control},
            name);
}

// Two parameters whose heads tp cuts, and one that every rank has.
Program lamb_update() {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const Shape heads{{'H', 4}, {'D', 8}}, row{{'D', 8}};
  const ValueId control = b.input("control", control_desc());
  std::vector<ValueId> sums;
  for (const char* name : {"first", "second"})
    sums.push_back(b.state(gradient_name(name), {DType::kF32, heads}, Category::kGradients, name));
  sums.push_back(b.state(gradient_name("row"), {DType::kF32, row}, Category::kGradients, "row"));
  b.output("squares", b.add<SquareSumOp>(sums, "square_sum"));
  const LambUpdateOp lamb(kScale, Moments{}, true);
  record(b, "first", heads, control, lamb);
  record(b, "second", heads, control, lamb);
  record(b, "row", row, control, lamb);
  return b.finish();
}

std::vector<std::string> listed(const Program& program) {
  std::vector<std::string> nodes;
  for (const Node& node : program.nodes) nodes.push_back(node.name + " " + std::string(node.op->kind()));
  return nodes;
}

TEST(DistributedUpdate, NormsOfPartsAreSummedInOneExchange) {
  for (const int rank : {0, 1}) {
    const Distribution how{.mesh = {{1, 2, 1, 1}, rank}};
    const Program update = distribute_update(lamb_update(), how, {}, ZeroPlan());
    EXPECT_EQ(listed(update),
              (std::vector<std::string>{"square_sum square_sum", "square_sum.all_reduce all_reduce",
                                        "first.moments lamb_moments", "second.moments lamb_moments",
                                        "update.norms.tp join", "update.norms.tp.all_reduce all_reduce",
                                        "first.squares view", "second.squares view", "first lamb_move",
                                        "second lamb_move", "row lamb_update"}));
    EXPECT_EQ(update.nodes[0].ins.size(), rank == 0 ? 3u : 2u) << "what both have, the first counts";
    EXPECT_EQ(update.values[update.nodes[0].ins[0]].desc.elems(), 16) << "half of its heads";
    EXPECT_EQ(update.values[update.nodes[4].outs[0]].desc.elems(), 4) << "two squares each";
    for (const size_t view : {0u, 1u})
      EXPECT_EQ(dynamic_cast<const ViewOp&>(*update.nodes[6 + view].op).offset(),
                static_cast<int64_t>(2 * view));
    for (const size_t sum : {1u, 5u})
      EXPECT_EQ(as_collective(*update.nodes[sum].op)->form().axes, Axis::kTensor);
    EXPECT_EQ(update.values[update.nodes[8].ins[3]].name, "first.squares");
    EXPECT_EQ(update.values[update.output("squares")].name, update.values[update.nodes[1].outs[0]].name);
  }
}

TEST(DistributedUpdate, OneRankHasItAsItWas) {
  const Program recorded = lamb_update();
  const Distribution how{.mesh = {{2, 1, 1, 1}, 0}};
  EXPECT_EQ(listed(distribute_update(recorded, how, {}, ZeroPlan())), listed(recorded))
      << "dp shares images alone";
}

// The bucket of 5, 40 and 16 elements at multiples of 16, of which the second of two ranks owns 32 to 79.
TEST(DistributedUpdate, ZeroLeavesARankItsRangeOfEveryValue) {
  Builder b;
  b.set_phase(Phase::kUpdate);
  const ValueId control = b.input("control", control_desc());
  const std::vector<std::pair<std::string, int64_t>> sizes = {{"a", 5}, {"b", 40}, {"c", 16}};
  Bucket bucket{.name = "gradients/0"};
  for (const auto& [name, elems] : sizes) {
    const Shape shape{{'D', elems}};
    record(b, name, shape, control, AdamUpdateOp(kScale, Moments{}));
    bucket.members.push_back({name, {DType::kF32, shape}, bucket.elems});
    bucket.elems += (elems + 15) / 16 * 16;
  }
  const Program recorded = b.finish();
  const Distribution how{.mesh = {{2, 1, 1, 1}, 1}};
  for (const int stage : {1, 2}) {
    const ZeroPlan zero({bucket}, {}, how.mesh, {.stage = stage});
    const Program update = distribute_update(recorded, how, {bucket}, zero);
    const std::vector<std::string> nodes = listed(update);
    ASSERT_EQ(nodes.size(), 5u);
    EXPECT_EQ(nodes[3], "parameters/0.all_gather all_gather");
    EXPECT_EQ(nodes[4], "parameters/0.wait wait");
    const CollectiveOp::Form& gather = as_collective(*update.nodes[3].op)->form();
    EXPECT_TRUE(gather.started && gather.in_place);
    EXPECT_EQ(gather.counts, (std::vector<size_t>{32, 48}));
    const struct {
      size_t node, input;
      const char *name, *container;
      int64_t elems, begin, at;  // `at`: in its container
    } rows[] = {{1, 0, "b#own", "parameters/0", 24, 16, 32},
                {2, 0, "c#own", "parameters/0", 16, 0, 64},
                {0, 0, "a#own", "parameters/0", 0, 0, 0},
                {1, 2, "optim/b/m", "", 24, 16, 0},
                {0, 3, "optim/a/v", "", 0, 0, 0}};
    for (const auto& row : rows) {
      const Value& value = update.values[update.nodes[row.node].ins[row.input]];
      EXPECT_EQ(value.name, row.name);
      EXPECT_EQ(value.container, row.container) << row.name;
      EXPECT_EQ(value.desc.elems(), row.elems) << row.name;
      EXPECT_EQ(value.desc.shape[0].offset, row.begin) << row.name;
      EXPECT_EQ(value.container_offset, row.at) << row.name;
    }
    // Whole sums are read in their own range, pieces from where the rank's own begins.
    const Value& sum = update.values[update.nodes[2].ins[1]];
    EXPECT_EQ(sum.name, stage == 1 ? gradient_name("c") + "#own" : gradient_name("c"));
    EXPECT_EQ(sum.container_offset, stage == 1 ? 64 : 32);
  }
}

// Sums of `count` parameters of 40 elements, of which this rank holds 16.
Program cut_sums(int count) {
  Builder b;
  b.set_phase(Phase::kBackward);
  Dim part('D', 40);
  part.local = 16;
  for (int i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    const TensorDesc desc{DType::kF32, {part}};
    b.add_all<AccumulateOp>(
        {b.state(gradient_name(name), desc, Category::kGradients, name), b.parameter(name, desc)}, name);
  }
  return b.finish();
}

// Of two ranks the usual part has 20 elements, which take 128 bytes of a bucket.
TEST(CutBuckets, CloseAlikeOnAllRanksOfTp) {
  EXPECT_EQ(make_buckets(cut_sums(4), {}, 128, false, 2).size(), 4u);
  EXPECT_EQ(make_buckets(cut_sums(4), {}, 160, false, 2).size(), 2u);
  EXPECT_EQ(make_buckets(cut_sums(4), {}, 160, false, 2)[0].elems, 32) << "of its own";
}

TEST(CutBuckets, AreSummedAsTheirAxesSay) {
  Program micro = cut_sums(2);
  const Mesh mesh{{2, 2, 1, 1}, 0};
  const auto exchanges = [&](AxisSet axes, bool scatter) {
    std::map<std::string, Layout> gradients;
    for (const char* name : {"p0", "p1"}) {
      Layout layout;
      for (const Axis axis : kAxes)
        if (axes.has(axis)) layout[axis] = Placed::partial();
      gradients[gradient_name(name)] = layout;
    }
    const std::vector<Bucket> buckets = make_buckets(micro, gradients, 1 << 20);
    place_in_buckets(micro, buckets);
    std::vector<std::string> nodes = listed(reduce_gradients(micro, buckets, mesh, scatter));
    return std::vector<std::string>(nodes.begin() + 2, nodes.end());
  };
  using Names = std::vector<std::string>;
  const AxisSet both = AxisSet(Axis::kData).with(Axis::kTensor);
  EXPECT_EQ(exchanges(Axis::kData, false),
            (Names{"gradients/0.all_reduce all_reduce", "gradients/0.wait wait"}));
  EXPECT_EQ(exchanges(Axis::kData, true),
            (Names{"gradients/0.reduce_scatter reduce_scatter", "gradients/0.wait wait"}));
  EXPECT_EQ(exchanges(Axis::kTensor, true),
            (Names{"gradients/0.all_reduce all_reduce", "gradients/0.wait wait"}));
  EXPECT_EQ(exchanges(both, true),
            (Names{"gradients/0.all_reduce all_reduce", "gradients/0.reduce_scatter reduce_scatter",
                   "gradients/0.wait wait"}));
  EXPECT_EQ(exchanges(AxisSet(), true), Names());
}

TEST(CutBuckets, EveryValueOfARankHasALayout) {
  const Distributed mine = distribute(cut_sums(2), {.mesh = {{2, 1, 1, 1}, 0}});
  EXPECT_EQ(mine.layouts.size(), mine.program.values.size());
  EXPECT_EQ(mine.origins.size(), mine.program.nodes.size());
}

}  // namespace
}  // namespace vitrail::distributed_updates
