// Errors in the words of the API: what options of the command line are called in its structs.
#pragma once

#include <atomic>
#include <string>
#include <typeinfo>

#include "base/error.h"

namespace vitrail {

// Returns the error with "--out" as TrainOptions::folder and its like; `owner` has what both structs have.
Error in_words_of(const std::string& owner, const Error& error);

// Calls what throws errors in the command line's words. One that a callback has thrown, as `of_caller` tells,
// passes as it is.
template <typename Call>
auto in_words_of_options(const char* owner, const Call& call, const std::atomic<bool>& of_caller = false) {
  try {
    return call();
  } catch (const Error& error) {
    if (of_caller || typeid(error) != typeid(Error)) throw;
    throw in_words_of(owner, error);
  }
}

}  // namespace vitrail
