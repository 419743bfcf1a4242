#include "dist/mpi/library.h"

#include <mpi.h>

#include <algorithm>
#include <exception>

#include "base/error.h"

namespace vitrail::mpi {

namespace {
constexpr size_t kSpareBuffers = 4;
}

Library::Library() : exceptions_(std::uncaught_exceptions()) {
  int started = 0, granted = 0;
  MPI_Initialized(&started);
  VT_CHECK(!started, "MPI is started once in a process");
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted), "MPI_Init_thread");
  if (granted < MPI_THREAD_SERIALIZED)
    throw Error(ErrorKind::kComm, "this MPI lets only one thread of a program call it",
                "an Open MPI built with threads, as Debian's is");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

Library::~Library() {
  if (!failed() && on_its_way_.empty() && std::uncaught_exceptions() <= exceptions_) MPI_Finalize();
}

void Library::check(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(strf("%s: %s", function, text));
  throw_if_failed();
}

void Library::move_on() {
  std::erase_if(on_its_way_, [](Moving* one) { return one->step(); });
}

Scratch Library::take(size_t size) {
  const auto fits =
      std::find_if(spare_.begin(), spare_.end(), [&](const Scratch& s) { return s.size >= size; });
  if (fits == spare_.end()) return {std::make_unique_for_overwrite<char[]>(size), size};
  Scratch found = std::move(*fits);
  spare_.erase(fits);
  return found;
}

// The smallest of too many goes.
void Library::give_back(Scratch scratch) {
  if (scratch.size == 0) return;
  const auto place =
      std::find_if(spare_.begin(), spare_.end(), [&](const Scratch& s) { return s.size >= scratch.size; });
  spare_.insert(place, std::move(scratch));
  if (spare_.size() > kSpareBuffers) spare_.erase(spare_.begin());
}

}  // namespace vitrail::mpi
