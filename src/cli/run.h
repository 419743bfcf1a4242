// From argv to exit code: finds the command, parses its options, runs it, shows what went wrong.
#pragma once

#include <span>
#include <string>

#include "base/error.h"

namespace vitrail::cli {

// `arguments` are those after the program's name. Never throws; the result is the exit code.
int run(std::span<const std::string> arguments);

// One screen: what, where (the same place named twice is one), what to try.
std::string format_error(const Error& error, bool colour, bool debug);

}  // namespace vitrail::cli
