#include "launch/launch_plan.h"

#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/values.h"
#include "dist/mpi_world.h"
#include "io/find_model.h"
#include "launch/environment.h"

namespace vitrail {

namespace {

constexpr const char* kInstall = "apt install openmpi-bin";

std::string program_in_path(const std::string& name) {
  const char* path = environment_variable("PATH");
  for (const std::string_view folder : split(path ? path : "", ':')) {
    const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file.string();
  }
  return {};
}

std::string ranks_text(int ranks) {
  return ranks == 1 ? "1 rank" : strf("%d ranks", ranks);
}

// Ranks may outnumber cores, and each has threads: Open MPI would bind it to one core.
LaunchPlan by_mpirun(const LaunchRequest& request, const std::string& mpirun) {
  LaunchPlan plan{
      .mpi = true,
      .words = {mpirun, "-n", std::to_string(request.ranks), "--bind-to", "none", "--oversubscribe"},
      .note = strf("%s, a process each, by %s", ranks_text(request.ranks).c_str(), mpirun.c_str())};
  if (!request.hosts.empty()) plan.words.insert(plan.words.end(), {"--host", request.hosts});
  plan.words.insert(plan.words.end(), {"-x", kWatchVariable});
  for (const std::string& name : environment_names())
    if (name.starts_with("VITRAIL_") && name != kWatchVariable)
      plan.words.insert(plan.words.end(), {"-x", name});
  if (::geteuid() == 0)
    plan.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  plan.environment.emplace_back("VITRAIL_RANKS", "1");  // of a process
  plan.words.push_back(this_program().string());
  plan.words.insert(plan.words.end(), request.command.begin(), request.command.end());
  return plan;
}

LaunchPlan as_threads(const LaunchRequest& request, const std::string& why) {
  LaunchPlan plan{.words = {this_program().string()},
                  .note = strf("%s as threads of one process", ranks_text(request.ranks).c_str())};
  plan.words.insert(plan.words.end(), request.command.begin(), request.command.end());
  plan.words.insert(plan.words.end(), {"--ranks", std::to_string(request.ranks)});
  if (!why.empty()) plan.note += ": " + why;
  return plan;
}

}  // namespace

LaunchPlan plan_launch(const LaunchRequest& request) {
  if (request.by == LaunchBy::kThreads) return as_threads(request, "");
  const std::string mpirun = program_in_path("mpirun");
  const std::string problem = mpirun.empty() ? strf("mpirun is not in PATH; %s", kInstall) : mpi_problem();
  if (problem.empty()) return by_mpirun(request, mpirun);
  if (request.by == LaunchBy::kMpirun || !request.hosts.empty())
    throw Error(ErrorKind::kDevice, "ranks cannot be started by mpirun: " + problem,
                "--rank-threads, for ranks as threads of one process");
  return as_threads(request, problem);
}

}  // namespace vitrail
