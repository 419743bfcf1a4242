// What is said where something is refused.
#pragma once

#include <string>

#include "base/error.h"

namespace vitrail::test {

// Returns "kind: message" of the Error that `body` throws, "" when it throws none.
template <typename Body>
std::string said_by(Body&& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.message();
  }
}

}  // namespace vitrail::test
