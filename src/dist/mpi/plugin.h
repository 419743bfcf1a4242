// What the MPI plugin offers, behind a single exported symbol, so that the program starts without the plugin
// and looks for it at run time. Holds nothing of MPI: the program includes it.
#pragma once

#include <cstdint>
#include <memory>

#include "dist/communicator.h"

namespace vitrail::mpi {

struct Api {
  uint64_t
      version;  // a hash of the headers both sides agree on (cmake/mpi.cmake): a plugin of others is refused
  std::unique_ptr<Communicator> (*world)();
};

// The name of the plugin's exported symbol.
inline constexpr const char* kApiSymbol = "vitrail_mpi_api";
using GetApi = const Api* (*)();

}  // namespace vitrail::mpi
