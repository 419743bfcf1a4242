// Where files that ship with Vitrail may lie: models, device files, kernel tables. Knows nothing of what is
// in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

std::filesystem::path this_program();

// Returns the places in search order: `name` in the share folder of the program as installed, `in_source` in
// the tree it was built from. The current folder is never searched.
std::vector<std::filesystem::path> shipped_places(const std::string& name, const std::string& in_source,
                                                  const std::filesystem::path& program = this_program());

}  // namespace vitrail
