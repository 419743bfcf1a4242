#include "dist/liveness/rank_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"

namespace vitrail::liveness {

namespace {

constexpr double kSecondThoughts = 1;  // seconds in which the cause of a failed exchange may still show

// Returns how long a rank's own thread may post nothing, by phase. A node is a second's work at most; opening
// data and writing files may take long.
double idle_limit(RankPhase phase) {
  constexpr double kSeconds[] = {600, 300, 300, 300, 600, 1200};
  return kSeconds[static_cast<size_t>(phase)];
}

RankPhase phase_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(RankPhase::kSave); ++i)
    if (name == to_string(static_cast<RankPhase>(i))) return static_cast<RankPhase>(i);
  return RankPhase::kInit;
}

}  // namespace

double Limits::period() const {
  return std::clamp(deadline_s / 10, 0.1, 1.0);
}
double Limits::silence() const {
  return deadline_s * 2 / 3;
}
double Limits::reported_silence() const {
  return std::max(1.2, 0.3 * silence());
}
double Limits::grace() const {
  return std::clamp(deadline_s / 6, 0.5, 2.5);
}

std::string RankRow::who() const {
  if (!joined) return strf("rank %d", rank);
  return strf("rank %d on %s (pid %lld)", rank, host.c_str(), static_cast<long long>(pid));
}

std::string RankRow::where() const {
  std::string text = strf("in %s", to_string(phase));
  if (step > 0) text += strf(" at step %lld", static_cast<long long>(step));
  return node.empty() ? text : text + ", node " + node;
}

RankTable::RankTable(int ranks, const Limits& limits, double now)
    : limits_(limits), rows_(static_cast<size_t>(ranks)), started_(now) {
  for (int r = 0; r < ranks; ++r) row(r).rank = r;
}

void RankTable::join(int rank, const std::string& host, int64_t pid, double now) {
  RankRow& r = row(rank);
  r.host = host;
  r.pid = pid;
  r.last_report = now;
  r.joined = true;
}

std::string RankTable::report(const Json& report, double now) {
  RankRow& r = row(report.at("rank").get<int>());
  const double silent = now - r.last_report;
  r.last_report = now;
  std::string sentence;
  if (silent >= limits_.reported_silence())
    sentence = strf("%s was silent for %.1f s %s: stopped, or without a processor; it goes on",
                    r.who().c_str(), silent, r.where().c_str());
  r.phase = phase_named(report.at("phase").get<std::string>());
  r.step = report.at("step").get<int64_t>();
  r.made = report.at("made").get<int64_t>();
  r.node = report.at("node").get<std::string>();
  r.idle_s = report.at("idle_s").get<double>();
  for (const Json& event : report.at("events")) r.events.push_back(event);
  if (r.events.size() > Pulse::kEvents)
    r.events.erase(r.events.begin(), r.events.end() - static_cast<std::ptrdiff_t>(Pulse::kEvents));
  return sentence;
}

void RankTable::gone(int rank) {
  RankRow& r = row(rank);
  if (r.left) return;
  r.left = true;
  decide({rank, kKilled, strf("%s was killed %s", r.who().c_str(), r.where().c_str()), Loss::kVanished});
}

void RankTable::failed(int rank, int code, bool by_others, const std::string& text, double now) {
  const RankRow& r = row(rank);
  Verdict verdict{rank, code, strf("%s failed %s: %s", r.who().c_str(), r.where().c_str(), text.c_str())};
  row(rank).left = true;
  if (!by_others) return decide(std::move(verdict));
  if (suspicion_) return;
  suspicion_ = std::move(verdict);
  suspected_ = now;
}

void RankTable::decide(Verdict verdict) {
  if (!verdict_) verdict_ = std::move(verdict);
}

void RankTable::forgive(double seconds) {
  started_ += seconds;
  for (RankRow& r : rows_) r.last_report += seconds;
}

void RankTable::judge_absent(double now) {
  if (now - started_ < limits_.join()) return;
  std::string names;
  int missing = 0, first = -1;
  for (const RankRow& r : rows_) {
    if (r.joined) continue;
    names += (names.empty() ? "" : ", ") + std::to_string(r.rank);
    if (missing++ == 0) first = r.rank;
  }
  if (missing > 0)
    decide({first, kCutOff,
            strf("%s %s of %d never came within %.0f s", missing > 1 ? "ranks" : "rank", names.c_str(),
                 size(), limits_.join()),
            Loss::kUnreachable});
}

void RankTable::judge_silent(double now, const std::function<bool(int rank)>& cut_off) {
  const RankRow* longest = nullptr;
  for (const RankRow& r : rows_)
    if (r.joined && !r.left && (!longest || r.last_report < longest->last_report)) longest = &r;
  if (!longest || now - longest->last_report < limits_.silence()) return;
  const double silent = now - longest->last_report;
  const bool cut = cut_off && cut_off(longest->rank);
  decide({longest->rank, cut ? kCutOff : kStopped,
          strf("%s %s for %.1f s, last seen %s", longest->who().c_str(),
               cut ? "is cut off: nothing sent to it was acknowledged" : "is stopped: it has said nothing",
               silent, longest->where().c_str()),
          cut ? Loss::kUnreachable : Loss::kVanished});
}

// Ranks that wait in a reduction wait for others: the one that is elsewhere, or behind, holds them up.
void RankTable::judge_idle() {
  const RankRow* culprit = nullptr;
  const auto rank_of = [](const RankRow& r) { return std::pair(r.phase == RankPhase::kReduction, r.step); };
  for (const RankRow& r : rows_) {
    if (!r.joined || r.left || r.idle_s < idle_limit(r.phase)) continue;
    if (!culprit || rank_of(r) < rank_of(*culprit)) culprit = &r;
  }
  if (culprit)
    decide({culprit->rank, kStopped,
            strf("%s hangs: nothing has happened for %.0f s %s", culprit->who().c_str(), culprit->idle_s,
                 culprit->where().c_str()),
            Loss::kVanished});
}

const std::optional<Verdict>& RankTable::judge(double now, const std::function<bool(int rank)>& cut_off) {
  if (verdict_) return verdict_;
  judge_absent(now);
  judge_silent(now, cut_off);
  judge_idle();
  if (suspicion_ && now - suspected_ >= kSecondThoughts) decide(*suspicion_);
  return verdict_;
}

bool RankTable::all_left() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const RankRow& r) { return r.left; });
}

int64_t RankTable::made() const {
  int64_t most = 0;
  for (const RankRow& r : rows_) most = std::max(most, r.made);
  return most;
}

std::string crash_text(const RankRow& row, const Verdict& verdict) {
  const nlohmann::ordered_json json = {
      {"rank", row.rank},
      {"host", row.host},
      {"pid", row.pid},
      {"phase", to_string(row.phase)},
      {"step", row.step},
      {"node", row.node},
      {"idle_s", row.idle_s},
      {"ended_by", {{"rank", verdict.rank}, {"code", verdict.code}, {"text", verdict.text}}},
      {"events", row.events}};
  return json_text(json, 2) + "\n";
}

}  // namespace vitrail::liveness
