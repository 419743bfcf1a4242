// An engine's runs timed node by node: the rows of a profile, and the peaks they are compared with. Knows no
// option and prints nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/timing.h"
#include "measure/profile.h"
#include "measure/timing.h"

namespace vitrail {

struct ProfiledEngine {
  ProfiledEngine(Engine own, const TimingBudget& budget, const TimingHooks& hooks);

  std::vector<ProfileRow> rows(ProfileBy by) const;
  std::string device() const;
  const char* backend() const { return engine.plan().backend->name(); }
  // Returns ", only rows in parallel"; empty when everything runs in parallel.
  std::string parallel_text() const;

  Engine engine;
  Peaks peaks;
  Spread seconds;
  std::vector<ProfileRow> parts;
};

nlohmann::ordered_json to_json(const std::vector<ProfileRow>& rows);
nlohmann::ordered_json to_json(const ProfiledEngine& engine);
// Returns one run of each engine as a timeline for Chrome or Perfetto.
std::string timeline_of(const std::vector<const ProfiledEngine*>& sides);

}  // namespace vitrail
