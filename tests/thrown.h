// What a call throws, in one text, so that a table of tests can hold kind, message and remedy together.
#pragma once

#include <string>

#include "base/error.h"

namespace vitrail {

// Returns "usage: message | remedy", without the bar where there is no remedy; "nothing" where nothing is
// thrown.
template <typename Body>
std::string thrown_by(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.message() +
           (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "nothing";
}

}  // namespace vitrail
