#include "measure/profile_run.h"

#include <algorithm>

#include "base/json_text.h"
#include "measure/trace.h"
#include "plan/devices.h"

namespace vitrail {

using nlohmann::ordered_json;

ProfiledEngine::ProfiledEngine(Engine own, const TimingBudget& budget, const TimingHooks& hooks)
    : engine(std::move(own)) {
  engine.time_nodes(true);
  peaks = peaks_of(engine.plan());
  seconds = spread_of(time_runs(engine, budget, hooks));
  parts = rows(ProfileBy::kPart);
}

std::vector<ProfileRow> ProfiledEngine::rows(ProfileBy by) const {
  return profile_rows(engine.plan(), engine.executor().times(), by);
}

std::string ProfiledEngine::device() const {
  return device_text(engine.plan());
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

ordered_json to_json(const ProfiledEngine& engine) {
  return {{"device", engine.device()},          {"batch", engine.engine.batch()},
          {"runs", engine.seconds.count},       {"ms_median", engine.seconds.median * 1e3},
          {"peak_gflops", engine.peaks.gflops}, {"copy_gbps", engine.peaks.gbps},
          {"parts", to_json(engine.parts)}};
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
