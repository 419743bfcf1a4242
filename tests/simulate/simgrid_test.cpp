// The closed forms of src/simulate against SimGrid, which plays every message: the same platforms, the same
// collectives, whole steps with compute and started exchanges, within 10 %.
#include "simgrid_run.h"

namespace vitrail::simgrid {
namespace {

constexpr Shape kShapes[] = {
    {Topology::kSwitch, 0, 1},    {Topology::kRing, 0, 1},    {Topology::kTree, 2, 1},
    {Topology::kTree, 4, 1},      {Topology::kFatTree, 4, 1}, {Topology::kFatTree, 4, 2},
    {Topology::kFatTree, 2, 1.5}, {Topology::kRail, 2, 1, 2}, {Topology::kRail, 2, 2, 2},
    {Topology::kRail, 2, 1, 4},   {Topology::kBus, 0, 1}};
constexpr int kHosts[] = {3, 8, 16};
StepTask exchange(CollectiveKind kind, AxisSet axes, double bytes, bool started, int slot) {
  return {.kind = StepTask::Kind::kCollective,
          .name = "exchange",
          .exchange = kind,
          .axes = axes,
          .bytes = bytes,
          .started = started,
          .slot = slot};
}

// A ring or an exchange over whole nodes is spread over all adapters of a node, which one message cannot be
// here: on rails the collectives are compared whose messages stay on their rail.
bool is_spread(const Shape& shape, Algorithm algorithm, size_t kind) {
  return shape.topology == Topology::kRail && (algorithm == Algorithm::kRing || kind == 3);
}

bool is_power_of_two(int value) {
  return (value & (value - 1)) == 0;
}

class SimGrid : public testing::TestWithParam<Shape> {
  void SetUp() override {
    if (is_missing()) GTEST_SKIP() << kMissing;
  }
};

TEST_P(SimGrid, TakesAsLongForACollective) {
  for (const int hosts : kHosts) {
    if (!is_power_of_two(hosts) && GetParam().leaf > 0) continue;
    for (const size_t kind : {0u, 2u, 3u})  // a scatter is a gather the other way round
      for (const double bytes : {4e3, 4e6}) {
        const Mesh mesh{{hosts, 1, 1, 1}, 0};
        const TaskList tasks = {exchange(static_cast<CollectiveKind>(kind), Axis::kData, bytes, false, 0)};
        for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHierarchical, Algorithm::kTree}) {
          const bool halves = algorithm == Algorithm::kTree;
          if (halves && !is_power_of_two(hosts)) continue;
          if (is_spread(GetParam(), algorithm, kind)) continue;
          SCOPED_TRACE(strf("%s of %g bytes", kKinds[kind], bytes));
          expect_alike(GetParam(), mesh, {tasks}, algorithm);
          if (kind == 3) break;  // an exchange has one algorithm
        }
      }
  }
}

// A step as data parallelism has it: buckets are summed while the backward half goes on.
TEST_P(SimGrid, TakesAsLongForAStep) {
  for (const int hosts : {2, 4, 8, 16}) {
    TaskList tasks = {{.seconds = 0.01, .name = "forward"}};
    for (int bucket = 0; bucket < 4; ++bucket) {
      tasks.push_back({.seconds = 0.005, .name = "backward"});
      tasks.push_back(exchange(CollectiveKind::kAllReduce, Axis::kData, 4e6, true, bucket));
    }
    for (int bucket = 0; bucket < 4; ++bucket)
      tasks.push_back({.kind = StepTask::Kind::kWait, .name = "wait", .slot = bucket});
    tasks.push_back({.seconds = 0.002, .name = "update"});
    if (hosts < GetParam().devices) continue;
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHierarchical})
      if (!is_spread(GetParam(), algorithm, 0))
        expect_alike(GetParam(), Mesh{{hosts, 1, 1, 1}, 0}, {tasks}, algorithm);
  }
}

// Tensor parallelism in neighbours, data parallelism across: groups share the links above them.
TEST_P(SimGrid, TakesAsLongForTwoAxes) {
  if (GetParam().topology == Topology::kRing)
    GTEST_SKIP() << "groups that interleave on a ring are not modelled";
  for (const int tp : {2, 4}) {
    if (GetParam().topology == Topology::kRail && tp != GetParam().devices) continue;
    TaskList tasks;
    for (int layer = 0; layer < 3; ++layer) {
      tasks.push_back({.seconds = 0.002, .name = "layer"});
      tasks.push_back(exchange(CollectiveKind::kAllReduce, Axis::kTensor, 1e6, false, 0));
    }
    tasks.push_back(exchange(CollectiveKind::kReduceScatter, Axis::kData, 4e6, true, 1));
    tasks.push_back({.seconds = 0.001, .name = "layer"});
    tasks.push_back({.kind = StepTask::Kind::kWait, .name = "wait", .slot = 1});
    tasks.push_back(exchange(CollectiveKind::kAllGather, Axis::kData, 4e6, false, 2));
    expect_alike(GetParam(), Mesh{{16 / tp, tp, 1, 1}, 0}, {tasks}, Algorithm::kRing);
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, SimGrid, testing::ValuesIn(kShapes), [](const auto& shape) {
  return std::string(enum_name(shape.param.topology)) + std::to_string(shape.index);
});

}  // namespace
}  // namespace vitrail::simgrid
