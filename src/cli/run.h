// From argv to exit code: finds the command, parses its options, runs it, and shows its errors.
#pragma once

#include <span>
#include <string>

#include "base/error.h"

namespace vitrail::cli {

// Runs a command; `arguments` are those after the program's name. Never throws; the result is the exit code.
int run(std::span<const std::string> arguments);

// Formats an error on one screen: what happened, where (a place named twice is shown once), and what to try.
std::string format_error(const Error& error, bool colour, bool debug);

}  // namespace vitrail::cli
