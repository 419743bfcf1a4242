// Reads what a training run of a study left in its folder, from its metrics.jsonl.
#include <algorithm>

#include "base/error.h"
#include "base/run_files.h"
#include "base/timing.h"
#include "measure/study/case_result.h"
#include "telemetry/metrics_file.h"

namespace vitrail {

namespace {

// Updates whose time was logged together: the last of them, how many, and the seconds of all.
struct Interval {
  int64_t step = 0, updates = 0;
  double seconds = 0;
};

struct RunLines {
  std::vector<Interval> intervals;
  std::vector<std::pair<int64_t, EpochResult>> epochs;  // with the step that ended each
  double memory_bytes = kUnknown, loss = kUnknown;
};

RunLines read_lines(const std::string& path) {
  RunLines lines;
  for_each_metrics_line(path, [&](const Json& line) {
    const std::string kind = metrics_text(line, "kind");
    const auto step = line["step"].get<int64_t>();
    if (kind == "timing") {
      const double updates = metrics_number(line, "updates");
      lines.intervals.push_back(
          {step, static_cast<int64_t>(updates), updates * metrics_number(line, "update_s")});
    } else if (kind == "train") {
      lines.memory_bytes = metrics_number(line, "memory_bytes");
      lines.loss = metrics_number(line, "loss");
    } else if (kind == "epoch") {
      lines.epochs.push_back({step,
                              {.epoch = static_cast<int64_t>(metrics_number(line, "epoch")),
                               .train_loss = metrics_number(line, "train_loss"),
                               .eval_loss = metrics_number(line, "eval_loss"),
                               .top1 = metrics_number(line, "eval_top1")}});
    }
  });
  return lines;
}

// Seconds of the updates after step `from` up to and with `to`; an interval across the border is shared out
// by its updates.
double seconds_between(const std::vector<Interval>& intervals, int64_t from, int64_t to) {
  double seconds = 0;
  for (const Interval& i : intervals) {
    const int64_t within = std::min(i.step, to) - std::max(i.step - i.updates, from);
    if (within > 0) seconds += i.seconds * static_cast<double>(within) / static_cast<double>(i.updates);
  }
  return seconds;
}

// The first interval, in which caches fill and threads start, counts only where there is no other.
double usual_update_s(const std::vector<Interval>& intervals) {
  std::vector<double> seconds;
  seconds.reserve(intervals.size());
  for (const Interval& i : intervals) seconds.push_back(i.seconds / static_cast<double>(i.updates));
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  return spread_of(seconds).median;
}

}  // namespace

CaseResult from_run(const StudyCase& one, const std::string& folder) {
  const std::string path = RunFiles(folder).metrics();
  const RunLines lines = read_lines(path);
  const RankHistory history = read_rank_history(path);
  VT_REQUIRE(history.timing && !lines.intervals.empty(), ErrorKind::kData, "%s tells no times of updates",
             path.c_str());
  const TimingStatus& timing = *history.timing;
  if (static_cast<int64_t>(timing.ranks.size()) != one.ranks)
    throw Error(ErrorKind::kData, strf("%s: %lld ranks were asked for and %zu have trained", path.c_str(),
                                       static_cast<long long>(one.ranks), timing.ranks.size()));
  CaseResult result{.which = one};
  const double updates = static_cast<double>(timing.updates);
  for (const RankTime& rank : timing.ranks)
    result.ranks.push_back({rank.compute_s / updates, rank.exposed_s / updates, rank.data_wait_s / updates,
                            rank.hidden_s / updates, rank.imbalance_s / updates});
  result.update_s = usual_update_s(lines.intervals);
  result.images_per_s = static_cast<double>(one.global_batch()) / result.update_s;
  result.sent_bytes = 0;
  for (const CollectiveTime& c : timing.collectives) result.sent_bytes += c.bytes / updates;
  result.memory_bytes = lines.memory_bytes;
  result.loss = lines.loss;
  int64_t before = 0;
  for (const auto& [step, epoch] : lines.epochs) {
    result.epochs.push_back(epoch);
    result.epochs.back().seconds = seconds_between(lines.intervals, before, step);
    result.epochs.back().updates = static_cast<double>(step - before);
    before = step;
  }
  return result;
}

}  // namespace vitrail
