// Errors and notes in the words of the API: what options of the command line are called in its structs.
#pragma once

#include <string>

#include "api/call_errors.h"
#include "base/error.h"

namespace vitrail {

// Returns the text with "--out" as TrainOptions::folder and its like; `owner` has what both structs have.
std::string in_words_of(const std::string& owner, std::string text);
Error in_words_of(const std::string& owner, const Error& error);

// Calls as with_api_errors() does what throws errors in the command line's words.
template <typename Call>
auto in_words_of_options(const char* owner, const Call& call, const CallerThrow& caller = {}) {
  const auto in_its_words = [&] {
    try {
      return call();
    } catch (const Error& error) {
      throw in_words_of(owner, error);
    }
  };
  return with_api_errors(in_its_words, caller);
}

}  // namespace vitrail
