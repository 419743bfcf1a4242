#include "base/write_error.h"

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

namespace vitrail {

namespace {

const char* remedy(int code) {
  switch (code) {
    case ENOENT:
      return "create the folder first";
    case ENOTDIR:
    case EEXIST:
      return "name a path that leads through folders only";
    case EISDIR:
      return "name a file, not a folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a place that can be written";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "look at the disk and its system's log, or choose another place";
  }
}

}  // namespace

void cannot_write(const char* action, const std::string& path, int code) {
  const std::string text =
      strf("cannot %s %s: %s", action, path.c_str(), std::generic_category().message(code).c_str());
  if (code == ENOSPC || code == EDQUOT)
    throw NoRoom(ErrorKind::kWrite, text, "free some space or choose another place");
  throw Error(ErrorKind::kWrite, text, remedy(code));
}

void require_different_paths(const std::vector<std::pair<std::string, std::string>>& outputs) {
  std::map<std::filesystem::path, std::string> taken;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
    const auto [at, is_new] = taken.emplace(std::filesystem::path(path).lexically_normal(), option);
    if (!is_new)
      throw Error(ErrorKind::kUsage,
                  strf("%s and %s both write to %s", at->second.c_str(), option.c_str(), path.c_str()),
                  "a path of its own for each");
  }
}

}  // namespace vitrail
