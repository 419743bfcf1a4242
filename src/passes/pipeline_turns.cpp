#include "passes/pipeline_turns.h"

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/error.h"

namespace vitrail {

namespace {

using Turns = std::vector<PipelineTurn>;

void require_fitting(const PipelineShape& s) {
  VT_CHECK(s.stages >= 1 && s.chunks >= 1 && s.micros >= 1, "a pipeline of nothing");
  VT_REQUIRE(s.chunks == 1 || s.schedule == PipelineSchedule::kInterleaved, ErrorKind::kConfig,
             "mesh.virtual_stages is %d; the schedule %s has one a stage, mesh.schedule=interleaved several",
             s.chunks, enum_name(s.schedule));
}

// The chunks of a stage take turns after a group of micro-batches. Groups have as many as there are stages,
// or a few more where the micro-batches do not divide: a smaller one would leave stages waiting for each
// other.
int64_t group_count(const PipelineShape& s) {
  return std::max<int64_t>(1, s.micros / s.stages);
}
int64_t largest_group(const PipelineShape& s) {
  return ceil_div(s.micros, group_count(s));
}

// A stage's forward halves in their order; its backward halves go through the chunks the other way.
Turns halves_of(const PipelineShape& s, int stage, bool backward) {
  Turns turns;
  const int64_t groups = group_count(s);
  for (int64_t group = 0; group < groups; ++group)
    for (int place = 0; place < s.chunks; ++place)
      for (int64_t micro = s.micros * group / groups; micro < s.micros * (group + 1) / groups; ++micro) {
        const int own = backward ? s.chunks - 1 - place : place;
        turns.push_back(
            {.stage = stage, .chunk = own * s.stages + stage, .micro = micro, .backward = backward});
      }
  return turns;
}

// Returns how many forward halves a stage makes before its first backward half.
int64_t warm_up(const PipelineShape& s, int stage) {
  const int64_t all = s.micros * s.chunks;
  if (s.schedule == PipelineSchedule::kGpipe) return all;
  if (s.chunks == 1) return std::min<int64_t>(all, s.stages - stage - 1);
  return std::min<int64_t>(all, 2 * (s.stages - stage - 1) + (s.chunks - 1) * largest_group(s));
}

Turns order_of(const PipelineShape& s, int stage) {
  const Turns forward = halves_of(s, stage, false), backward = halves_of(s, stage, true);
  auto next = forward.begin() + warm_up(s, stage);
  Turns turns(forward.begin(), next);
  for (const PipelineTurn& turn : backward) {
    if (next != forward.end()) turns.push_back(*next++);
    turns.push_back(turn);
  }
  return turns;
}

// Gives every turn the first time at which its stage is free and what it reads is there.
class Clock {
 public:
  explicit Clock(const PipelineShape& shape) : shape_(shape) {}

  Turns run(std::vector<Turns> orders) {
    std::vector<size_t> next(orders.size());
    std::vector<int64_t> free(orders.size());
    Turns done;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < orders.size(); ++s)
        for (; next[s] < orders[s].size(); ++next[s], moved = true) {
          PipelineTurn& turn = orders[s][next[s]];
          const int64_t ready = ready_time(turn);
          if (ready < 0) break;
          turn.time = std::max(free[s], ready);
          free[s] = turn.end();
          ends_[{turn.chunk, turn.micro, turn.backward}] = turn.end();
          done.push_back(turn);
        }
    }
    for (size_t s = 0; s < orders.size(); ++s)
      VT_CHECK(next[s] == orders[s].size(), "the turns of stage %zu wait for each other", s);
    return done;
  }

 private:
  // -1: what it reads is not made yet.
  int64_t ready_time(const PipelineTurn& turn) const {
    const int last = shape_.all_chunks() - 1;
    if (!turn.backward) return turn.chunk == 0 ? 0 : end_of(turn.chunk - 1, turn.micro, false);
    return turn.chunk == last ? end_of(last, turn.micro, false) : end_of(turn.chunk + 1, turn.micro, true);
  }
  int64_t end_of(int chunk, int64_t micro, bool backward) const {
    const auto found = ends_.find({chunk, micro, backward});
    return found == ends_.end() ? -1 : found->second;
  }

  const PipelineShape& shape_;
  std::map<std::tuple<int, int64_t, bool>, int64_t> ends_;
};

}  // namespace

std::vector<PipelineTurn> pipeline_turns(const PipelineShape& shape) {
  require_fitting(shape);
  std::vector<Turns> orders;
  orders.reserve(static_cast<size_t>(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) orders.push_back(order_of(shape, stage));
  Turns turns = Clock(shape).run(std::move(orders));
  std::stable_sort(turns.begin(), turns.end(), [](const PipelineTurn& a, const PipelineTurn& b) {
    return std::pair(a.time, a.stage) < std::pair(b.time, b.stage);
  });
  return turns;
}

std::vector<PipelineTurn> turns_of(const std::vector<PipelineTurn>& turns, int stage) {
  Turns own;
  std::copy_if(turns.begin(), turns.end(), std::back_inserter(own),
               [&](const PipelineTurn& turn) { return turn.stage == stage; });
  return own;
}

double bubble_of(const std::vector<PipelineTurn>& turns, int stages) {
  int64_t busy = 0, end = 0;
  for (const PipelineTurn& turn : turns) {
    busy += turn.end() - turn.time;
    end = std::max(end, turn.end());
  }
  return end == 0 ? 0 : 1 - static_cast<double>(busy) / static_cast<double>(end * stages);
}

int64_t most_in_flight(const std::vector<PipelineTurn>& turns, int stage) {
  int64_t now = 0, most = 0;
  for (const PipelineTurn& turn : turns_of(turns, stage)) {
    if (!turn.backward) most = std::max(most, ++now);
    if (turn.backward) --now;
  }
  return most;
}

std::string to_string(const std::vector<PipelineTurn>& turns, const PipelineShape& shape) {
  int64_t end = 0;
  for (const PipelineTurn& turn : turns) end = std::max(end, turn.end());
  const size_t width = std::to_string(shape.micros - 1).size() + (shape.chunks > 1 ? 4 : 2);
  std::string text;
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<std::string> cells(static_cast<size_t>(end), ".");
    for (const PipelineTurn& turn : turns_of(turns, stage))
      for (int64_t t = turn.time; t < turn.end(); ++t)
        cells[static_cast<size_t>(t)] =
            (turn.backward ? "B" : "F") + std::to_string(turn.micro) +
            (shape.chunks > 1 ? "/" + std::to_string(turn.chunk / shape.stages) : std::string());
    text += strf("stage %d  ", stage);
    for (std::string& cell : cells) text += cell.append(width - std::min(width, cell.size()), ' ');
    while (text.ends_with(' ')) text.pop_back();
    text += "\n";
  }
  return text;
}

}  // namespace vitrail
