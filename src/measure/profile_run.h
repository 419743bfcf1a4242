// A model's runs, or a training run's updates, timed node by node: the rows of a profile, the peaks they are
// compared with, and on several ranks the rows of each. Knows no option and prints nothing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/timing.h"
#include "measure/profile.h"
#include "measure/rank_steps.h"
#include "measure/timing.h"
#include "train/team.h"

namespace vitrail {

// Holds what was measured. Its rows are those of one rank; where there are several, of the first.
struct Profile {
  std::string what;             // "vit_base_patch16_224 (width 768, ...), batch 1, in f32"
  std::string device, backend;  // "cpu (avx2, 2 threads)", "cpu"
  bool training = false;
  int64_t batch = 0;
  Peaks peaks;
  Spread seconds;  // of a run or an update
  std::vector<ProfileRow> parts, fine, operations, nodes;
  std::vector<std::vector<ProfileRow>> ranks;  // parts by rank; empty: there is one
};

struct ProfiledEngine {
  // On several ranks all of them make one at the same time and time as many runs.
  ProfiledEngine(Engine own, const TimingBudget& budget, const TimingHooks& hooks,
                 const Team& team = Team(nullptr));

  std::vector<ProfileRow> rows(ProfileBy by) const;
  std::string device() const;
  const char* backend() const { return engine.plan().backend->name(); }
  // Returns ", only rows in parallel"; empty when everything runs in parallel.
  std::string parallel_text() const;

  Engine engine;
  Profile profile;
};

// Updates of a training run on synthetic images. All ranks of a run call it.
Profile profile_training(const RunPlan& plan, RankContext& rank, const TimingBudget& budget,
                         const TimingHooks& hooks);

// The same on the ranks of a world, all of which call it; the process of the first one has the result.
std::optional<Profile> profile_ranks(World world, const RankStepsRequest& request,
                                     const TimingBudget& budget);

// Returns a budget of as many runs on every rank, by the first one's time for a run.
TimingBudget agreed_budget(const TimingBudget& budget, const Team& team, const std::function<void()>& run);
// Groups the nodes of the programs in every way; gather_ranks() adds the parts of the other ranks.
void take_rows(const std::vector<TimedProgram>& programs, Profile& profile);
void gather_ranks(const Team& team, Profile& profile);

nlohmann::ordered_json to_json(const std::vector<ProfileRow>& rows);
nlohmann::ordered_json to_json(const Profile& profile);
// Returns one run of each engine as a timeline for Chrome or Perfetto.
std::string timeline_of(const std::vector<const ProfiledEngine*>& sides);

// Returns a line: what was measured, how long it takes, the peaks.
std::string headline(const Profile& profile);
// Returns the tables by part, by step of a block and by operation or node, each under its title; `bold` makes
// a title.
std::string tables_of(const Profile& profile, bool by_node,
                      const std::function<std::string(const std::string&)>& bold);
// Returns the operations of a micro-batch and those of the update, each under its title.
std::string step_tables(SyntheticSteps& steps, const Peaks& peaks,
                        const std::function<std::string(const std::string&)>& bold);
// The time of each rank in each part, or of training in each phase; what ranks exchange is a column of its
// own.
struct RankTimes {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> seconds;  // by rank and column
};
RankTimes rank_times_of(const Profile& profile);
std::string rank_column(const ProfileRow& row, bool training);
// Returns a table of the time in each part by rank; empty where there is one.
std::string rank_table(const Profile& profile);

}  // namespace vitrail
