// Finds which third-party libraries this process runs with or would open, and what each is for. Queries the
// dynamic linker, so that the result describes the running program and no vendor header is needed. Looking
// for a library that is opened on demand opens it.
#pragma once

#include <string>
#include <vector>

namespace vitrail {

struct LibraryInfo {
  std::string name, purpose;
  std::string package;  // the Debian package to install when it is missing
  bool needed = true;   // false: optional
  bool found = false;
  std::string version;  // may be unknown even when found
  std::string path;
};
std::vector<LibraryInfo> find_libraries();

// Returns "62.3.0" from "…/libjpeg.so.62.3.0"; empty without a number.
std::string version_in_soname(const std::string& path);

}  // namespace vitrail
