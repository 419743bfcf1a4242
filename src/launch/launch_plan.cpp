#include "launch/launch_plan.h"

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/values.h"
#include "io/find_model.h"
#include "launch/environment.h"
#include "launch/session_folder.h"

namespace vitrail {

namespace {

std::string ranks_text(int ranks) {
  return ranks == 1 ? "1 rank" : strf("%d ranks", ranks);
}

// Ranks may outnumber cores, and each has threads: Open MPI would bind it to one core.
LaunchPlan by_mpirun(const LaunchRequest& request, const ChosenMpi& mpi) {
  const std::string& mpirun = mpi.report.mpirun;
  LaunchPlan plan{
      .mpi = true,
      .words = {mpirun, "-n", std::to_string(request.ranks), "--bind-to", "none", "--oversubscribe"},
      .environment = mpi.environment,
      .sessions = request.hosts.empty() ? session_parent() : "",
      .note = strf("%s, a process each, by %s%s", ranks_text(request.ranks).c_str(),
                   mpi.report.came_along ? "the Open MPI that came along, " : "", mpirun.c_str())};
  if (!request.hosts.empty())
    plan.words.insert(plan.words.end(),
                      {request.hosts.is_file ? "--hostfile" : "--host", request.hosts.text});
  plan.words.insert(plan.words.end(), {"-x", kWatchVariable});
  for (const std::string& name : environment_names())
    if (name.starts_with("VITRAIL_") && name != kWatchVariable)
      plan.words.insert(plan.words.end(), {"-x", name});
  if (::geteuid() == 0)
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
      plan.environment.emplace_back(name, "1");
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

LaunchPlan plan_launch(const LaunchRequest& request, const MpiSearch& search) {
  if (request.by == LaunchBy::kThreads) return as_threads(request, "");
  const ChosenMpi mpi = choose_mpi(search);
  if (mpi.report.came_along && !request.hosts.empty())
    throw Error(ErrorKind::kDevice,
                "the Open MPI that came along with Vitrail starts ranks on its own host only",
                strf("%s, on each of the hosts", kInstallMpi));
  if (mpi.problem.empty()) return by_mpirun(request, mpi);
  if (request.by == LaunchBy::kMpirun || !request.hosts.empty())
    throw Error(ErrorKind::kDevice, "ranks cannot be started by mpirun: " + mpi.problem,
                "--rank-threads, for ranks as threads of one process");
  return as_threads(request, mpi.problem);
}

int threads_of_rank(const std::string& text, int rank, int world) {
  const std::vector<std::string_view> words = split(text, ',');
  const auto wrong = [&](const std::string& what) {
    return Error(ErrorKind::kUsage, strf("--threads %s %s", quoted(text).c_str(), what.c_str()),
                 "a number of threads, 0 for every core, or one for each rank, as --threads 4,4,2,1");
  };
  if (words.size() > 1 && static_cast<int>(words.size()) != world)
    throw wrong(strf("names %zu ranks; there are %d", words.size(), world));
  const auto threads =
      parse_integer(std::string(words.size() > 1 ? words[static_cast<size_t>(rank)] : words[0]));
  if (!threads || *threads < 0 || *threads > kMaxThreads)
    throw wrong(strf("holds no number from 0 to %d", kMaxThreads));
  return static_cast<int>(*threads);
}

}  // namespace vitrail
