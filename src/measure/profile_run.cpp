#include "measure/profile_run.h"

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "measure/trace.h"
#include "plan/devices.h"

namespace vitrail {

using nlohmann::ordered_json;

// Ranks must run equally often: the first one's time for a run decides how often.
TimingBudget agreed_budget(const TimingBudget& budget, const Team& team, const std::function<void()>& run) {
  if (team.alone() || budget.runs > 0) return budget;
  constexpr double kFewest = 3, kMost = 1000;
  run();
  const Clock::time_point start = Clock::now();
  run();
  const double runs = std::clamp(std::ceil(budget.seconds / seconds_since(start)), kFewest, kMost);
  return {.warmup = budget.warmup, .seconds = 0, .runs = static_cast<int64_t>(team.from_leader(runs))};
}

// Each rank tells its rows by part; the first keeps them all.
void gather_ranks(const Team& team, Profile& profile) {
  if (team.alone()) return;
  for (const std::string& text : team.texts_of_all(json_text(to_json(profile.parts)))) {
    std::vector<ProfileRow> rows;
    for (const Json& row : Json::parse(text)) {
      const int phase = row.at("phase_number");
      rows.push_back({.name = row.at("name"),
                      .kind = "",
                      .kernel = "",
                      .nodes = row.at("nodes"),
                      .seconds = row.at("ms").get<double>() / 1e3,
                      .flops = row.at("flops"),
                      .bytes = row.at("bytes"),
                      .phase = static_cast<Phase>(phase)});
    }
    profile.ranks.push_back(std::move(rows));
  }
}

void take_rows(const std::vector<TimedProgram>& programs, Profile& profile) {
  profile.parts = profile_rows(programs, ProfileBy::kPart);
  profile.fine = profile_rows(programs, ProfileBy::kFine);
  profile.operations = profile_rows(programs, ProfileBy::kOperation);
  profile.nodes = profile_rows(programs, ProfileBy::kNode);
}

ProfiledEngine::ProfiledEngine(Engine own, const TimingBudget& budget, const TimingHooks& hooks,
                               const Team& team)
    : engine(std::move(own)) {
  engine.time_nodes(true);
  const std::vector<float> images = rule_images(engine.config(), engine.batch());
  const TimingBudget agreement = agreed_budget(budget, team, [&] {
    engine.run(images, engine.batch());
    engine.finish();
  });
  profile.device = device();
  profile.backend = backend();
  profile.batch = engine.batch();
  profile.peaks = peaks_of(engine.plan());
  team.wait();
  profile.seconds = spread_of(time_runs(engine, agreement, hooks));
  take_rows({{engine.plan(), engine.executor().times()}}, profile);
  gather_ranks(team, profile);
}

std::vector<ProfileRow> ProfiledEngine::rows(ProfileBy by) const {
  return profile_rows(engine.plan(), engine.executor().times(), by);
}

std::string ProfiledEngine::device() const {
  return device_text(engine.plan()) + parallel_text();
}

std::string ProfiledEngine::parallel_text() const {
  const DeviceInfo& info = engine.plan().device;
  const std::pair<const char*, bool> kinds[] = {
      {"heads", info.parallel_heads}, {"rows", info.parallel_rows}, {"softmax", info.parallel_softmax}};
  if (std::all_of(std::begin(kinds), std::end(kinds), [](const auto& kind) { return kind.second; }))
    return "";
  std::string on;
  for (const auto& [name, is_on] : kinds)
    if (is_on) on += (on.empty() ? "" : " and ") + std::string(name);
  return on.empty() ? ", nothing in parallel" : ", only " + on + " in parallel";
}

ordered_json to_json(const std::vector<ProfileRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const ProfileRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"phase", phase_name(row.phase)},
                    {"phase_number", static_cast<int>(row.phase)},
                    {"kind", row.kind},
                    {"kernel", row.kernel},
                    {"nodes", row.nodes},
                    {"layers", row.layers()},
                    {"ms", row.seconds * 1e3},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"declined", row.declined}});
    if (row.layers() > 0) list.back()["ms_per_layer"] = 1e3 * row.seconds_per_layer();
  }
  return list;
}

ordered_json to_json(const Profile& profile) {
  ordered_json json = {{"device", profile.device},
                       {"batch", profile.batch},
                       {"training", profile.training},
                       {"runs", profile.seconds.count},
                       {"ms_median", profile.seconds.median * 1e3},
                       {"peak_gflops", profile.peaks.gflops},
                       {"copy_gbps", profile.peaks.gbps},
                       {"parts", to_json(profile.parts)},
                       {"fine", to_json(profile.fine)}};
  for (const auto& rows : profile.ranks) json["ranks"].push_back(to_json(rows));
  return json;
}

std::string timeline_of(const std::vector<const ProfiledEngine*>& sides) {
  ordered_json events = ordered_json::array();
  for (size_t i = 0; i < sides.size(); ++i)
    for (ordered_json& event : trace_events(sides[i]->engine.plan(), sides[i]->engine.executor().times(),
                                            sides[i]->device(), static_cast<int>(i) + 1))
      events.push_back(std::move(event));
  return json_text(events) + "\n";
}

}  // namespace vitrail
