// The tables of all schedules, by what must hold for any: every micro-batch once forward and once backward
// through every chunk, nothing before what it reads, at most so many in flight, the known bubbles, and stages
// that follow the table with sends and receives in order never wait for each other in a circle.
#include "passes/pipeline_turns.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "base/error.h"

namespace vitrail {
namespace {

std::vector<PipelineShape> shapes() {
  std::vector<PipelineShape> list;
  for (const int stages : {1, 2, 3, 4, 7})
    for (const int64_t micros : {1, 2, 4, 7, 8, 12, 28})
      for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::k1F1B})
        list.push_back({schedule, stages, 1, micros});
  for (const int stages : {2, 3, 4})
    for (const int chunks : {1, 2, 3})
      for (const int64_t micros : {1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 16, 20})
        list.push_back({PipelineSchedule::kInterleaved, stages, chunks, micros});
  return list;
}

std::string text_of(const PipelineShape& s) {
  return strf("%s, %d stages of %d chunks, %lld micro-batches", enum_name(s.schedule), s.stages, s.chunks,
              static_cast<long long>(s.micros));
}

TEST(PipelineTurns, EveryMicroBatchPassesEveryChunkOnceEachWay) {
  for (const PipelineShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    std::set<std::tuple<int, int64_t, bool>> seen;
    for (const PipelineTurn& turn : pipeline_turns(s)) {
      EXPECT_TRUE(seen.insert({turn.chunk, turn.micro, turn.backward}).second);
      EXPECT_EQ(turn.stage, s.stage_of(turn.chunk));
      EXPECT_TRUE(turn.micro >= 0 && turn.micro < s.micros && turn.chunk >= 0 && turn.chunk < s.all_chunks());
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(2 * s.micros * s.all_chunks()));
  }
}

TEST(PipelineTurns, NothingBeginsBeforeWhatItReadsIsMade) {
  for (const PipelineShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    std::map<std::tuple<int, int64_t, bool>, int64_t> ends;
    const std::vector<PipelineTurn> turns = pipeline_turns(s);
    for (const PipelineTurn& turn : turns) ends[{turn.chunk, turn.micro, turn.backward}] = turn.end();
    const auto end_of = [&](int chunk, int64_t micro, bool back) { return ends.at({chunk, micro, back}); };
    std::vector<int64_t> free(static_cast<size_t>(s.stages));
    for (const PipelineTurn& turn : turns) {
      int64_t& own = free[static_cast<size_t>(turn.stage)];
      EXPECT_GE(turn.time, own) << "two turns of stage " << turn.stage << " at once";
      own = turn.end();
      const bool last = turn.chunk + 1 == s.all_chunks();
      const int64_t ready = turn.backward    ? end_of(last ? turn.chunk : turn.chunk + 1, turn.micro, !last)
                            : turn.chunk > 0 ? end_of(turn.chunk - 1, turn.micro, false)
                                             : 0;
      EXPECT_GE(turn.time, ready);
    }
  }
}

// Sums of gradients are then those of one rank, bit for bit.
TEST(PipelineTurns, AChunkTakesMicroBatchesInTheirOrder) {
  for (const PipelineShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    std::map<std::pair<int, bool>, int64_t> next;
    for (const PipelineTurn& turn : pipeline_turns(s)) {
      int64_t& expected = next[{turn.chunk, turn.backward}];
      EXPECT_EQ(turn.micro, expected++);
    }
  }
}

TEST(PipelineTurns, KeepsAsManyMicroBatchesAsTheScheduleSays) {
  for (const PipelineShape& s : shapes())
    for (int stage = 0; stage < s.stages; ++stage) {
      SCOPED_TRACE(text_of(s) + strf(", stage %d", stage));
      const int64_t most = most_in_flight(pipeline_turns(s), stage);
      if (s.schedule == PipelineSchedule::kGpipe) {
        EXPECT_EQ(most, s.micros);
      }
      if (s.schedule == PipelineSchedule::k1F1B) {
        EXPECT_EQ(most, std::min<int64_t>(s.micros, s.stages - stage));
      }
      if (s.schedule == PipelineSchedule::kInterleaved) {
        const int64_t groups = std::max<int64_t>(1, s.micros / s.stages),
                      largest = (s.micros + groups - 1) / groups;
        EXPECT_LE(most, 2 * (s.stages - stage - 1) + (s.chunks - 1) * largest + 1);
      }
    }
}

TEST(PipelineTurns, BubblesAreTheKnownOnes) {
  for (const PipelineShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    const double filled = static_cast<double>(s.micros * s.chunks), fill = s.stages - 1;
    const double bubble = bubble_of(pipeline_turns(s), s.stages), known = fill / (filled + fill);
    // Chunks wait for each other where not every stage has a micro-batch.
    if (s.chunks > 1 && s.micros < s.stages) {
      EXPECT_GE(bubble, known - 1e-12);
    } else {
      EXPECT_NEAR(bubble, known, 1e-12);
    }
  }
}

// A stage as a list of what it does: receive (blocks until the peer has sent), send (never blocks), and the
// waits for sends, which block until the peer has taken it. Messages keep their order between two stages
// within a channel, so each must be the one that the receiver expects.
class Rendezvous {
 public:
  explicit Rendezvous(const PipelineShape& s) : s_(s) {
    const std::vector<PipelineTurn> turns = pipeline_turns(s);
    for (int stage = 0; stage < s.stages; ++stage) {
      std::map<int, Message> late;
      for (const PipelineTurn& turn : turns_of(turns, stage)) add(turn, stage, late);
      for (const auto& [chunk, message] : late) acts_[stage].push_back({Act::kWait, message});
    }
  }

  bool completes() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [stage, acts] : acts_)
        while (!acts.empty() && try_act(stage, acts.front())) acts.pop_front(), moved = true;
    }
    return std::all_of(acts_.begin(), acts_.end(), [](const auto& acts) { return acts.second.empty(); });
  }

 private:
  struct Message {
    int peer = 0, channel = 0;
    std::tuple<int, int64_t, bool> what = {};  // chunk that made it, micro-batch, direction
  };
  struct Act {
    enum Kind { kReceive, kSend, kWait } kind;
    Message message;
  };

  void add(const PipelineTurn& turn, int stage, std::map<int, Message>& late) {
    std::deque<Act>& acts = acts_[stage];
    const int last = s_.all_chunks() - 1, from = turn.backward ? turn.chunk + 1 : turn.chunk - 1,
              to = turn.backward ? turn.chunk - 1 : turn.chunk + 1;
    const Message sent{s_.stage_of(std::max(0, to)), turn.backward, {turn.chunk, turn.micro, turn.backward}};
    if (turn.backward && turn.chunk < last)
      acts.push_back({Act::kWait, {s_.stage_of(turn.chunk + 1), 0, {turn.chunk, turn.micro, false}}});
    if (from >= 0 && from <= last)
      acts.push_back({Act::kReceive, {s_.stage_of(from), turn.backward, {from, turn.micro, turn.backward}}});
    if (to < 0 || to > last) return;
    if (turn.backward && late.contains(turn.chunk)) acts.push_back({Act::kWait, late[turn.chunk]});
    acts.push_back({Act::kSend, sent});
    if (turn.backward) late[turn.chunk] = sent;
  }

  bool try_act(int stage, const Act& act) {
    const Message& m = act.message;
    if (act.kind == Act::kSend) return sent_[{stage, m.peer, m.channel}].push_back(m.what), true;
    if (act.kind == Act::kWait) return taken_.contains(m.what);
    auto& queue = sent_[{m.peer, stage, m.channel}];
    if (queue.empty()) return false;
    EXPECT_EQ(queue.front(), m.what) << "another message than expected comes first";
    taken_.insert(queue.front());
    queue.pop_front();
    return true;
  }

  PipelineShape s_;
  std::map<int, std::deque<Act>> acts_;
  std::map<std::tuple<int, int, int>, std::deque<std::tuple<int, int64_t, bool>>> sent_;
  std::set<std::tuple<int, int64_t, bool>> taken_;
};

TEST(PipelineTurns, StagesNeverWaitForEachOtherInACircle) {
  for (const PipelineShape& s : shapes()) {
    SCOPED_TRACE(text_of(s));
    if (s.stages == 1) continue;
    EXPECT_TRUE(Rendezvous(s).completes());
  }
}

TEST(PipelineTurns, RefusesNumbersThatDoNotFit) {
  EXPECT_THROW(pipeline_turns({PipelineSchedule::kGpipe, 4, 2, 6}), Error);
  EXPECT_THROW(pipeline_turns({PipelineSchedule::k1F1B, 4, 2, 8}), Error);
}

// Eight micro-batches of three stages are two groups of four, and the stages wait no longer than they must.
TEST(PipelineTurns, GroupsThatDoNotDivideAreLarger) {
  const PipelineShape s{PipelineSchedule::kInterleaved, 3, 2, 8};
  std::vector<std::pair<int64_t, int>> forward;
  for (const PipelineTurn& turn : turns_of(pipeline_turns(s), 2))
    if (!turn.backward) forward.emplace_back(turn.micro, turn.chunk / s.stages);
  EXPECT_EQ(forward, (std::vector<std::pair<int64_t, int>>{{0, 0},
                                                           {1, 0},
                                                           {2, 0},
                                                           {3, 0},
                                                           {0, 1},
                                                           {1, 1},
                                                           {2, 1},
                                                           {3, 1},
                                                           {4, 0},
                                                           {5, 0},
                                                           {6, 0},
                                                           {7, 0},
                                                           {4, 1},
                                                           {5, 1},
                                                           {6, 1},
                                                           {7, 1}}));
}

TEST(PipelineTurns, PrintsALineAStage) {
  const PipelineShape s{PipelineSchedule::k1F1B, 2, 1, 3};
  EXPECT_EQ(to_string(pipeline_turns(s), s),
            "stage 0  F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2\n"
            "stage 1  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 .  .\n");
  const PipelineShape ten{PipelineSchedule::kGpipe, 1, 1, 10};
  EXPECT_TRUE(to_string(pipeline_turns(ten), ten).starts_with("stage 0  F0 F1 F2 ")) << "ends at F9";
  const PipelineShape eleven{PipelineSchedule::kGpipe, 1, 1, 11};
  EXPECT_TRUE(to_string(pipeline_turns(eleven), eleven).starts_with("stage 0  F0  F1  F2  "));
  const PipelineShape two{PipelineSchedule::kInterleaved, 2, 2, 2};
  EXPECT_EQ(to_string(pipeline_turns(two), two),
            "stage 0  F0/0 F1/0 F0/1 F1/1 .    .    B0/1 B0/1 .    B1/1 B1/1 B0/0 B0/0 B1/0 B1/0\n"
            "stage 1  .    F0/0 F1/0 F0/1 B0/1 B0/1 F1/1 B1/1 B1/1 B0/0 B0/0 B1/0 B1/0 .    .\n");
}

}  // namespace
}  // namespace vitrail
