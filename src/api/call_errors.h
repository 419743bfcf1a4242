// What leaves a call of the API is an Error that tells lack of memory by its kind. What a callback of the
// caller throws passes as it is.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <new>

#include "base/error.h"

namespace vitrail {

// The first exception that a callback of the caller has thrown during a call.
class CallerThrow {
 public:
  // Keeps the exception that is being handled, and throws one of Vitrail's own in its stead: whatever is made
  // of that leaves the caller's as it is.
  [[noreturn]] void keep() {
    if (!taken_.exchange(true)) kept_ = std::current_exception();
    try {
      throw;
    } catch (const std::exception& error) {
      throw Error(ErrorKind::kInternal, error.what());
    } catch (...) {
      throw Error(ErrorKind::kInternal, "a callback has thrown");
    }
  }
  // Throws what was kept, if a callback has thrown. For when the call has ended.
  void rethrow() const {
    if (kept_) std::rethrow_exception(kept_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr kept_;
};

// Returns the callback as one whose exceptions `caller` keeps. Both must outlive it.
template <typename Result, typename... Args>
std::function<Result(Args...)> kept_by(CallerThrow& caller, const std::function<Result(Args...)>& callback) {
  if (!callback) return {};
  return [&callback, &caller](Args... args) {
    try {
      return callback(args...);
    } catch (...) {
      caller.keep();
    }
  };
}

// Calls what may find no memory, or end with what a callback has thrown.
template <typename Call>
auto with_api_errors(const Call& call, const CallerThrow& caller = {}) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    caller.rethrow();
    throw Error(ErrorKind::kMemory, "memory ran out",
                "fewer images a call, a smaller batch, or free some memory");
  } catch (...) {
    caller.rethrow();
    throw;
  }
}

}  // namespace vitrail
