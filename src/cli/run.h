// From argv to exit code: finds the command, parses its options, runs it, and shows its errors.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "cli/commands.h"

namespace vitrail::cli {

// Runs a command; `arguments` are those after the program's name. Never throws; the result is the exit code.
int run(std::span<const std::string> arguments);

// Returns the options of a command; `arguments` are those after its name. Throws as parse_options() does.
Options options_of(const Command& command, std::span<const std::string> arguments);
// Returns how many words of `arguments` name the command; 0 when they name another.
size_t words_of(const Command& command, std::span<const std::string> arguments);

// Formats an error on one screen: what happened, where (a place named twice is shown once), and what to try.
std::string format_error(const Error& error, bool colour, bool debug);

}  // namespace vitrail::cli
