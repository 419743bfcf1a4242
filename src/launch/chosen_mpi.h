// Chooses which Open MPI starts ranks as processes: the host's, whose mpirun is in PATH; where that is
// missing or cannot be used, the one that a relocatable installation brings along, which serves one host.
// Starts nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "dist/mpi_world.h"
#include "launch/child_process.h"

namespace vitrail {

// Says where MPI is looked for.
struct MpiSearch {
  std::string path;               // PATH's value
  std::filesystem::path program;  // whose installation may have brought one along
  std::function<MpiReport(const std::filesystem::path& libraries)> report = mpi_report;
};
// Returns the search by this process's PATH and program.
MpiSearch usual_mpi_search();

struct ChosenMpi {
  MpiReport report;
  std::string problem;      // why it cannot start ranks, with the line that mends it; empty when it can
  Assignments environment;  // tells one that came along where it lies
};
ChosenMpi choose_mpi(const MpiSearch& search = usual_mpi_search());

}  // namespace vitrail
