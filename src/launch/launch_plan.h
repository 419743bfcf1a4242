// Decides how `vitrail launch` starts the ranks of a command: as processes by mpirun, or as threads of one
// process; and why. Starts nothing.
#pragma once

#include <string>
#include <vector>

#include "launch/chosen_mpi.h"
#include "launch/hosts.h"

namespace vitrail {

enum class LaunchBy { kBest, kMpirun, kThreads };

struct LaunchRequest {
  int ranks = 1;
  LaunchBy by = LaunchBy::kBest;
  Hosts hosts;                       // none: this one
  std::vector<std::string> command;  // "train", "--config", ...
};

struct LaunchPlan {
  bool mpi = false;
  std::vector<std::string> words;  // the program to start and its arguments
  Assignments environment;
  std::string sessions = {};  // where the job's session folder is made; empty: Open MPI chooses
  std::string note;           // "4 ranks, a process each, by /usr/bin/mpirun"
};

// Throws Error(kDevice), with the line that brings it, when MPI is asked for and absent, or hosts are and the
// only one is that which came along.
LaunchPlan plan_launch(const LaunchRequest& request, const MpiSearch& search = usual_mpi_search());

// The threads of a rank by --threads: one number for all, or as many as there are ranks ("4,4,2,1"). Throws
// Error(kUsage).
int threads_of_rank(const std::string& text, int rank, int world);

}  // namespace vitrail
