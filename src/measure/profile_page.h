// Shows what a profile came to, with what was measured beside it: as text, as JSON, and as a page that stands
// alone, with roofline, the time of each layer by part, the sweep's figure, the time of each rank, and the
// tables. Measures nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "measure/profile_sweep.h"
#include "measure/seed_table.h"
#include "telemetry/page.h"

namespace vitrail {

struct ProfileResult {
  std::string model, dtype;
  Profile own;
  bool by_node = false;           // the last table: nodes instead of operations
  std::optional<Profile> beside;  // the same model on another device
  std::optional<SeedTimes> seed;
  Sweep sweep = {};
};

nlohmann::ordered_json to_json(const ProfileResult& result);
// `bold` makes a title.
std::string to_text(const ProfileResult& result, const std::function<std::string(const std::string&)>& bold);
std::string to_page(const ProfileResult& result);
// Returns what belongs into a file of this name: the page or, for *.svg, one figure, the sweep's where there
// is one and else the roofline.
std::string to_file(const ProfileResult& result, const std::string& name);

// Its figures. The roofline has a mark for every step of a layer.
Figure roofline_of(const Profile& profile);
// A bar for each layer, by part; all phases of training together.
Figure layers_of(const Profile& profile);
Figure ranks_of(const Profile& profile);

}  // namespace vitrail
