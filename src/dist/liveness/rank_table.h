// The ranks of a job as their reports show them, and the judgement when one of them ends the job: which rank,
// why, and with what exit code. Pure bookkeeping: the time is handed in, nothing is sent or waited for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "dist/pulse.h"

namespace vitrail::liveness {

// The times of a job, all from its deadline: what happens to a rank ends the job within it.
struct Limits {
  double deadline_s = 15;

  double period() const;                          // between two reports of a rank
  double silence() const;                         // after which a rank counts as stopped or cut off
  double reported_silence() const;                // a silence that is reported, if the rank goes on
  double join() const { return 8 * deadline_s; }  // all ranks have come by then
  double grace() const;                           // in which a rank may end by itself after the judgement
};

constexpr int kKilled = 137, kStopped = 70, kCutOff = 69;  // exit codes

// Says how the rank of a verdict was lost: it told its error itself; its process died or stopped; nothing
// comes from where it is.
enum class Loss { kTold, kVanished, kUnreachable };

struct Verdict {
  int rank = -1;  // -1: none in particular
  int code = 0;   // the exit code of the job
  std::string text;
  Loss loss = Loss::kTold;
};

struct RankRow {
  int rank = 0;
  std::string host;
  int64_t pid = 0;
  RankPhase phase = RankPhase::kInit;
  int64_t step = 0, made = 0;  // the one being made, and the furthest that its process has made
  std::string node;
  Json events = Json::array();
  double last_report = 0;  // when it came
  double idle_s = 0;       // how long the rank's own thread had posted nothing then
  bool joined = false, left = false;

  std::string who() const;    // "rank 1 on vt1 (pid 4242)"
  std::string where() const;  // "in forward at step 12, node blocks.0.attn.qkv"
};

class RankTable {
 public:
  RankTable(int ranks, const Limits& limits, double now);

  void join(int rank, const std::string& host, int64_t pid, double now);
  // Takes over one rank's part of a report; throws Json's exceptions for what is no report. Returns a
  // sentence when the rank had been silent for long and goes on.
  std::string report(const Json& report, double now);
  void leave(int rank) { row(rank).left = true; }
  // The connection ended without a word: the process is gone.
  void gone(int rank);
  // An error of a rank. A failed exchange with others is seldom the cause: it counts when nothing else shows.
  void failed(int rank, int code, bool by_others, const std::string& text, double now);
  // The one who keeps the table was not running for so long.
  void forgive(double seconds);

  // The first reason to end the job; later ones are its consequences. `cut_off` tells whether what is sent to
  // a rank is not acknowledged.
  const std::optional<Verdict>& judge(double now, const std::function<bool(int rank)>& cut_off);
  const std::optional<Verdict>& verdict() const { return verdict_; }
  void decide(Verdict verdict);

  int size() const { return static_cast<int>(rows_.size()); }
  const std::vector<RankRow>& rows() const { return rows_; }
  bool all_left() const;
  int64_t made() const;  // the furthest step that any rank has made; 0: none
  bool has(int rank) const { return rank >= 0 && rank < size(); }

 private:
  RankRow& row(int rank) { return rows_.at(static_cast<size_t>(rank)); }
  void judge_absent(double now);
  void judge_silent(double now, const std::function<bool(int rank)>& cut_off);
  void judge_idle();

  Limits limits_;
  std::vector<RankRow> rows_;
  double started_;
  std::optional<Verdict> verdict_, suspicion_;  // the latter counts when it is old enough
  double suspected_ = 0;
};

// The file crash/rank-R.json as text: what is known of a rank, its last events, and why the job ended.
std::string crash_text(const RankRow& row, const Verdict& verdict);

}  // namespace vitrail::liveness
