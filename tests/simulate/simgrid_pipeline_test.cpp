// Pipelines by the closed forms of src/simulate and on SimGrid, which plays every message: micro-batches that
// pass stages, all forward and then all backward or one of each in turn, with and without data parallelism.
#include "simgrid_run.h"

namespace vitrail::simgrid {
namespace {

StepTask message(CollectiveKind kind, int peer, int channel, double bytes, bool started, int slot) {
  return {.kind = StepTask::Kind::kCollective,
          .name = "message",
          .exchange = kind,
          .axes = Axis::kPipeline,
          .bytes = bytes,
          .started = started,
          .peer = peer,
          .channel = channel,
          .slot = slot};
}

// The work of one stage.
class Stage {
 public:
  Stage(int stage, int stages, double bytes) : stage_(stage), stages_(stages), bytes_(bytes) {}

  void forward(int micro) { pass(stage_ - 1, stage_ + 1, 0, 0.004, micro); }
  void backward(int micro) { pass(stage_ + 1, stage_ - 1, 1, 0.008, kBackward + micro); }
  // Waits for what was sent, sums the gradients over dp, updates.
  TaskList end(bool sums) {
    for (const int slot : sent_)
      tasks_.push_back({.kind = StepTask::Kind::kWait, .name = "wait", .slot = slot});
    if (sums)
      tasks_.push_back({.kind = StepTask::Kind::kCollective,
                        .name = "sums",
                        .exchange = CollectiveKind::kAllReduce,
                        .axes = Axis::kData,
                        .bytes = 4e6,
                        .slot = 2 * kBackward});
    tasks_.push_back({.seconds = 0.002, .name = "update"});
    return tasks_;
  }

 private:
  static constexpr int kBackward = 1000;

  bool exists(int stage) const { return stage >= 0 && stage < stages_; }
  void pass(int from, int to, int channel, double seconds, int slot) {
    if (exists(from)) tasks_.push_back(message(CollectiveKind::kReceive, from, channel, bytes_, false, slot));
    tasks_.push_back({.seconds = seconds, .name = "compute"});
    if (!exists(to)) return;
    tasks_.push_back(message(CollectiveKind::kSend, to, channel, bytes_, true, slot));
    sent_.push_back(slot);
  }

  int stage_, stages_;
  double bytes_;
  TaskList tasks_;
  std::vector<int> sent_;
};

// All forward, then all backward; or (1F1B) backward as soon as it can be.
TaskList stage_tasks(int stage, int stages, int micros, double bytes, bool in_turn, bool sums) {
  Stage one(stage, stages, bytes);
  const int ahead = in_turn ? std::min(micros, stages - stage) : micros;
  for (int micro = 0; micro < ahead; ++micro) one.forward(micro);
  for (int micro = 0; micro < micros; ++micro) {
    one.backward(micro);
    if (ahead + micro < micros) one.forward(ahead + micro);
  }
  return one.end(sums);
}

constexpr Shape kJoined[] = {{Topology::kSwitch, 0, 1},  {Topology::kRing, 0, 1},
                             {Topology::kTree, 2, 1},    {Topology::kTree, 4, 1},
                             {Topology::kFatTree, 4, 1}, {Topology::kFatTree, 4, 2}};

class SimGridPipeline : public testing::TestWithParam<Shape> {
  void SetUp() override {
    if (is_missing()) GTEST_SKIP() << kMissing;
  }
};

// Messages of a tenth of a forward half, and of more than one.
TEST_P(SimGridPipeline, TakesAsLongForAStep) {
  for (const int stages : {2, 4, 8})
    for (const int dp : {1, 2})
      for (const double bytes : {4e5, 5e6})
        for (const bool in_turn : {false, true}) {
          if (dp > 1 && GetParam().topology == Topology::kRing) continue;  // groups that interleave
          SCOPED_TRACE(strf("%d stages x %d, %g bytes, %s", stages, dp, bytes, in_turn ? "1f1b" : "gpipe"));
          std::vector<TaskList> lists;
          lists.reserve(static_cast<size_t>(stages));
          for (int stage = 0; stage < stages; ++stage)
            lists.push_back(stage_tasks(stage, stages, 8, bytes, in_turn, dp > 1));
          expect_alike(GetParam(), Mesh{{dp, 1, 1, stages}, 0}, lists, Algorithm::kRing);
        }
}

INSTANTIATE_TEST_SUITE_P(Topologies, SimGridPipeline, testing::ValuesIn(kJoined), [](const auto& shape) {
  return std::string(enum_name(shape.param.topology)) + std::to_string(shape.index);
});

}  // namespace
}  // namespace vitrail::simgrid
