// Help pages, made from the same tables that drive parsing: examples first, then every option. Prints
// nothing.
#pragma once

#include <span>
#include <string>

#include "cli/options.h"

namespace vitrail::cli {

// Returns the page of a command in `width` columns; long texts are wrapped.
std::string help_page(const CommandSpec& command, int width);

// The page of a first word that several commands share: `vitrail bench --help`.
std::string group_page(const std::string& word, std::span<const CommandSpec> commands, int width);

// The page of `vitrail --help`: what it is, first examples, one line per command.
std::string overview_page(std::span<const CommandSpec> commands, int width);

}  // namespace vitrail::cli
