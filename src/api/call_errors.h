// What leaves a call of the API is an Error, whatever was thrown below it: lack of memory and what the system
// refuses are told by their kinds. What a callback of the caller throws passes as it is.
#pragma once

#include <atomic>
#include <exception>
#include <functional>

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

// Returns what stands for an exception of a library: lack of memory, a refusal of the system, or a fault.
Error error_for(const std::exception& thrown);

// Calls what may throw exceptions of libraries, or end with what a callback has thrown.
template <typename Call>
auto with_api_errors(const Call& call, const CallerThrow& caller = {}) {
  try {
    return call();
  } catch (const Error&) {
    caller.rethrow();
    throw;
  } catch (const std::exception& thrown) {
    caller.rethrow();
    throw error_for(thrown);
  } catch (...) {
    caller.rethrow();
    throw;
  }
}

}  // namespace vitrail
