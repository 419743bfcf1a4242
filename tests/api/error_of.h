// What a call throws, as the error itself, for tests that look at its kind, message or hint.
#pragma once

#include "vitrail/error.h"

namespace vitrail {

// Returns "nothing was thrown" as an internal error where that is so.
template <typename Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kInternal, "nothing was thrown"};
}

}  // namespace vitrail
