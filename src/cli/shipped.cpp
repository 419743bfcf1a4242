#include "cli/shipped.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

fs::path this_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

std::vector<fs::path> shipped_places(const std::string& name, const std::string& in_source,
                                     const fs::path& program) {
  std::vector<fs::path> places;
  if (const fs::path folder = program.parent_path(); !folder.empty())
    places = {(folder / "../share/vitrail" / name).lexically_normal(),
              (folder / "../.." / in_source).lexically_normal()};
  places.emplace_back(in_source);
  return places;
}

}  // namespace vitrail::cli
