// Vitrail's own code adds this to its exception type, vitrail/error.h: the exit codes of its kinds, texts,
// and the checks that throw it. A message says what was expected, what was found; `hint` says what to try.
#pragma once

#include <string>

#include "vitrail/error.h"

namespace vitrail {

const char* to_string(ErrorKind kind);
int exit_code(ErrorKind kind);

// printf-style text, checked by the compiler.
[[gnu::format(printf, 1, 2)]] std::string strf(const char* format, ...);

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}

// Calls `body`; an Error passing through gets `place` added to its context.
template <typename Body>
decltype(auto) with_context(const std::string& place, Body&& body) {
  try {
    return body();
  } catch (Error& error) {
    error.at(place);
    throw;
  }
}

}  // namespace vitrail

// VT_CHECK guards an invariant of Vitrail's own code (kind internal) and is always on. Input is checked by
// VT_REQUIRE, which names the kind.
#define VT_CHECK(condition, ...)                                                                         \
  do {                                                                                                   \
    if (!(condition))                                                                                    \
      ::vitrail::detail::check_failed(__FILE__, __LINE__, #condition, ::vitrail::strf(" " __VA_ARGS__)); \
  } while (false)

// VT_REQUIRE guards what the user or the machine must provide: VT_REQUIRE(n > 0, ErrorKind::kData, "%s: n is
// %d", ...).
#define VT_REQUIRE(condition, kind, ...)                                          \
  do {                                                                            \
    if (!(condition)) throw ::vitrail::Error(kind, ::vitrail::strf(__VA_ARGS__)); \
  } while (false)
