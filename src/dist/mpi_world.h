// Ranks that MPI started, as seen by a program that runs without MPI too: whether this process is one of
// them, why MPI cannot be used, and the group of all of them. The plugin libvitrail_mpi.so is looked for when
// it is first asked for. Reads no environment: the program's surface hands it a way to look a variable up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "dist/communicator.h"

namespace vitrail {

// Returns the value of a variable of the environment, or null.
using Variables = std::function<const char*(const char* name)>;

// Returns whether this process is a rank that mpirun started.
bool started_by_mpirun(const Variables& variables);
// Returns whether this process is a task that srun started, among several or alone, and offers PMIx to.
bool started_by_srun(const Variables& variables);
// Returns whether srun started several tasks without PMIx: each would take itself for the only rank, or die
// inside MPI. `srun --mpi=pmix` is what to say.
bool started_by_srun_without_pmix(const Variables& variables);

inline constexpr const char* kInstallMpi = "apt install openmpi-bin";

struct MpiReport {
  std::string problem;          // why MPI cannot be used, with the line that brings it; empty when it can
  std::string library, plugin;  // "Open MPI v4.1.4", and the file that uses it
  std::string mpirun;           // starts its ranks; empty: none is known
  bool came_along = false;      // with Vitrail, and serves one host
};
// Starts nothing and looks for no mpirun. `libraries` is a folder with MPI's, for where the system has none.
MpiReport mpi_report(const std::filesystem::path& libraries = {});

// Initialises MPI, once in the life of a process, and returns the group of all its ranks; throws
// Error(kDevice) where mpi_report() has a problem. MPI is finalised when the last communicator made of it is
// destroyed, except after a failure or while an exception is passing: finalising would wait for ranks that
// may never come. The process then ends without, and mpirun or srun ends the others.
//
// To be used by one thread at a time. abort() may be called from any thread; it makes the waits of this
// process fail, and telling the other ranks is up to the caller: MPI itself would kill them without a word.
std::unique_ptr<Communicator> mpi_world();

// The ranks that share this host's memory, and the place of this one among them.
struct HostPlace {
  int rank = 0, size = 1;
};
// Every rank calls it, after mpi_world().
HostPlace mpi_host_place();

namespace mpi {

// Holds what the plugin hands over.
struct Api {
  uint64_t version;  // a hash of this header and what it includes (cmake/mpi.cmake)
  std::unique_ptr<Communicator> (*world)();
  std::string (*library)();  // "Open MPI v4.1.4"; starts nothing
  HostPlace (*host_place)();
};
inline constexpr const char* kApiSymbol = "vitrail_mpi_api";

}  // namespace mpi

}  // namespace vitrail
