#include "telemetry/rank_times.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "telemetry/format.h"
#include "telemetry/metrics_file.h"
#include "telemetry/table.h"

namespace vitrail {

namespace {
using nlohmann::ordered_json;

// The keys of a rank's seconds, in the order in which they are shown.
struct TimeKey {
  const char *key, *title;
  double RankTime::*value;
};
constexpr TimeKey kKeys[] = {{"compute_s", "compute", &RankTime::compute_s},
                             {"exposed_s", "exposed", &RankTime::exposed_s},
                             {"imbalance_s", "of it imbalance", &RankTime::imbalance_s},
                             {"data_wait_s", "data wait", &RankTime::data_wait_s},
                             {"hidden_s", "hidden", &RankTime::hidden_s}};

double share(const RankTime& rank, double RankTime::*value) {
  return rank.total_s() > 0 ? rank.*value / rank.total_s() : 0;
}

// Returns "81-85 %", or "81 %" where all ranks are alike.
std::string share_range(const TimingStatus& status, double RankTime::*value) {
  double least = INFINITY, most = 0;
  for (const RankTime& rank : status.ranks) {
    least = std::min(least, 100 * share(rank, value));
    most = std::max(most, 100 * share(rank, value));
  }
  const std::string low = strf("%.0f", least), high = strf("%.0f", most);
  return low == high ? high + " %" : low + "-" + high + " %";
}

std::string bandwidth(const CollectiveTime& c) {
  return c.seconds > 0 && c.bytes > 0 ? format_si(c.bus_bytes_per_s()) + "B/s" : "";  // a receive sends none
}

std::vector<double> numbers_of(const Json& line, const char* key) {
  std::vector<double> numbers;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_array()) return numbers;
  for (const Json& item : *found) numbers.push_back(item.is_number() ? item.get<double>() : 0);
  return numbers;
}

TimingStatus timing_of(const Json& line) {
  TimingStatus status;
  status.step = line["step"].get<int64_t>();
  status.updates = static_cast<int64_t>(metrics_number(line, "updates"));
  for (const TimeKey& row : kKeys) {
    const std::vector<double> numbers = numbers_of(line, row.key);
    status.ranks.resize(std::max(status.ranks.size(), numbers.size()));
    for (size_t r = 0; r < numbers.size(); ++r) status.ranks[r].*row.value = numbers[r];
  }
  if (const auto found = line.find("collectives"); found != line.end() && found->is_array())
    for (const Json& c : *found)
      status.collectives.push_back({metrics_text(c, "kind"), static_cast<int64_t>(metrics_number(c, "count")),
                                    metrics_number(c, "bytes"), metrics_number(c, "seconds")});
  return status;
}

StartStatus start_of(const Json& line) {
  StartStatus status;
  status.step = line["step"].get<int64_t>();
  if (const auto found = line.find("phases"); found != line.end() && found->is_array())
    for (const Json& phase : *found)
      status.phases.push_back({metrics_text(phase, "phase"), numbers_of(phase, "seconds")});
  return status;
}

}  // namespace

void RankTime::add(const RankTime& other) {
  for (const TimeKey& row : kKeys) this->*row.value += other.*row.value;
}

double TimingStatus::update_s() const {
  double most = 0;
  for (const RankTime& rank : ranks) most = std::max(most, rank.total_s());
  return updates > 0 ? most / static_cast<double>(updates) : 0;
}

void TimingStatus::add(const TimingStatus& later) {
  ranks.resize(std::max(ranks.size(), later.ranks.size()));
  for (size_t r = 0; r < later.ranks.size(); ++r) ranks[r].add(later.ranks[r]);
  for (const CollectiveTime& c : later.collectives) {
    const auto same = [&](const CollectiveTime& known) { return known.kind == c.kind; };
    const auto found = std::find_if(collectives.begin(), collectives.end(), same);
    CollectiveTime& sum =
        found == collectives.end() ? collectives.emplace_back(CollectiveTime{.kind = c.kind}) : *found;
    sum.count += c.count;
    sum.bytes += c.bytes;
    sum.seconds += c.seconds;
  }
  updates += later.updates;
  step = later.step;
  time = later.time;
}

ordered_json to_json(const TimingStatus& s) {
  ordered_json line = {
      {"kind", "timing"}, {"step", s.step}, {"updates", s.updates}, {"update_s", s.update_s()}};
  for (const TimeKey& row : kKeys) {
    std::vector<double> seconds;
    for (const RankTime& rank : s.ranks) seconds.push_back(rank.*row.value);
    line[row.key] = seconds;
  }
  line["collectives"] = ordered_json::array();
  for (const CollectiveTime& c : s.collectives)
    line["collectives"].push_back(
        {{"kind", c.kind},
         {"count", c.count},
         {"bytes", c.bytes},
         {"seconds", c.seconds},
         {"bus_bytes_per_s", c.seconds > 0 ? ordered_json(c.bus_bytes_per_s()) : ordered_json()}});
  line["time"] = s.time;
  return line;
}

ordered_json to_json(const StartStatus& s) {
  ordered_json line = {{"kind", "start"}, {"step", s.step}, {"phases", ordered_json::array()}};
  for (const StartStatus::Phase& phase : s.phases)
    line["phases"].push_back({{"phase", phase.name}, {"seconds", phase.seconds}});
  line["time"] = s.time;
  return line;
}

std::string breakdown_line(const TimingStatus& s) {
  std::string text =
      strf("%s of %s: compute %s, exposed %s (imbalance %s), data wait %s, hidden %s",
           format_count(s.updates, "update").c_str(), format_seconds(s.update_s()).c_str(),
           share_range(s, &RankTime::compute_s).c_str(), share_range(s, &RankTime::exposed_s).c_str(),
           share_range(s, &RankTime::imbalance_s).c_str(), share_range(s, &RankTime::data_wait_s).c_str(),
           share_range(s, &RankTime::hidden_s).c_str());
  for (const CollectiveTime& c : s.collectives)
    if (c.bytes > 0) text += strf(", %s %s", c.kind.c_str(), bandwidth(c).c_str());
  return text;
}

std::string breakdown_tables(const TimingStatus& s) {
  const double updates = static_cast<double>(std::max<int64_t>(s.updates, 1));
  std::vector<Column> columns = {{"rank", Align::kRight}, {"an update", Align::kRight}};
  for (const TimeKey& row : kKeys) columns.push_back({row.title, Align::kRight});
  Table ranks(columns);
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    std::vector<std::string> cells = {std::to_string(r), format_seconds(s.ranks[r].total_s() / updates)};
    for (const TimeKey& row : kKeys) cells.push_back(format_percent(share(s.ranks[r], row.value)));
    ranks.row(cells);
  }
  std::string text = ranks.text(2);
  Table collectives({{"collective"},
                     {"an update", Align::kRight},
                     {"bytes a rank sends", Align::kRight},
                     {"on its way", Align::kRight},
                     {"bus bandwidth", Align::kRight}});
  for (const CollectiveTime& c : s.collectives)
    collectives.row({c.kind, format_significant(static_cast<double>(c.count) / updates),
                     format_bytes(static_cast<uint64_t>(c.bytes / updates)),
                     format_seconds(c.seconds / static_cast<double>(std::max<int64_t>(c.count, 1))),
                     bandwidth(c)});
  if (collectives.rows() > 0) text += collectives.text(2);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string start_line(const StartStatus& s) {
  double all = 0;
  std::string text;
  for (const StartStatus::Phase& phase : s.phases) {
    const double most =
        phase.seconds.empty() ? 0 : *std::max_element(phase.seconds.begin(), phase.seconds.end());
    all += most;
    text += strf("%s%s %s", text.empty() ? "" : ", ", phase.name.c_str(), format_seconds(most).c_str());
  }
  return "start " + format_seconds(all) + ": " + text;
}

RankHistory read_rank_history(const std::string& metrics_path) {
  RankHistory history;
  for_each_metrics_line(metrics_path, [&](const Json& line) {
    const std::string kind = metrics_text(line, "kind");
    if (kind == "start") history.start = start_of(line);
    if (kind != "timing") return;
    TimingStatus status = timing_of(line);
    if (!history.timing || history.timing->ranks.size() != status.ranks.size())
      history.timing = std::move(status);
    else
      history.timing->add(status);
  });
  return history;
}

}  // namespace vitrail
