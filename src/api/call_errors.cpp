#include "api/call_errors.h"

#include <cerrno>
#include <new>
#include <system_error>

namespace vitrail {

namespace {

Error lack_of_memory() {
  return {ErrorKind::kMemory, "memory ran out", "fewer images a call, a smaller batch, or free some memory"};
}

// Returns the error of a call of the system, such as one of std::filesystem; `code` is its errno.
Error refused_by_system(int code, const char* what) {
  switch (code) {
    case ENOMEM:
      return lack_of_memory();
    case ENOSPC:
    case EDQUOT:
      return {ErrorKind::kWrite, what, "free some space or choose another place"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorKind::kWrite, what, "choose a place that can be read and written"};
    case EAGAIN:
      return {ErrorKind::kDevice, what, "fewer threads, or a higher limit on processes and memory"};
    default:
      return {ErrorKind::kInternal, what, "look at the disk and its system's log; else report it, please"};
  }
}

}  // namespace

Error error_for(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown)) return lack_of_memory();
  if (const auto* refusal = dynamic_cast<const std::system_error*>(&thrown))
    return refused_by_system(refusal->code().value(), thrown.what());
  return {ErrorKind::kInternal, thrown.what(), "this is a fault in Vitrail; please report it with the call"};
}

}  // namespace vitrail
