// Where files that come with Vitrail may lie: models, device files, tables of kernels. Knows nothing of what
// is in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vitrail {

std::filesystem::path this_program();

// In the order they are looked through: `name` of the share folder of the program as installed, `in_source`
// of the tree it was built in. Never what happens to lie where one stands.
std::vector<std::filesystem::path> shipped_places(const std::string& name, const std::string& in_source,
                                                  const std::filesystem::path& program = this_program());

}  // namespace vitrail
