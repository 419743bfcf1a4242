#include "io/shipped.h"

namespace vitrail {

namespace fs = std::filesystem;

fs::path this_program() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

std::vector<fs::path> shipped_places(const std::string& name, const std::string& in_source,
                                     const fs::path& program) {
  const fs::path folder = program.parent_path();
  std::vector<fs::path> places;
  if (!folder.is_absolute()) return places;
  if (folder.filename() == "bin") places.push_back(folder.parent_path() / "share/vitrail" / name);
  std::error_code ignored;
  if (fs::exists(folder / "CMakeCache.txt", ignored))
    places.push_back((folder / "../.." / in_source).lexically_normal());
  return places;
}

}  // namespace vitrail
